"""A copy-on-write view of the whole file system: whatever a pass writes in it reaches none of the user's files.

Run as a program, this file is the holder of a view: it makes a mount namespace in which every file system that can be
written is covered by an overlay, says where the overlays keep what is written, and waits until its standard input is
closed. Then it ends whatever still runs in the view. The pass enters it as its first act (`entering`); its children are
in the view, too. Nothing needs to be undone after a kill: the namespace ends with its last process. Only the standard
library is used, and only Linux is known.
"""

import ctypes
import json
import os
import signal
import stat
import sys
import time
from contextlib import suppress

_CLONE_NEWNS, _CLONE_NEWUSER = 0x00020000, 0x10000000
_MS_RDONLY, _MS_REMOUNT, _MS_BIND, _MS_REC, _MS_PRIVATE = 1, 32, 4096, 16384, 1 << 18
_MNT_DETACH = 2
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41, "riscv64": 41, "ppc64le": 203, "s390x": 217}
TEMPORARY = (
    ".tracekit-tmp"  # at the top of the overlay on the working folder: a file can be moved from one to the other
)

# Devices, sockets of services, and what the kernel shows of itself: there are no files to lose in them.
_NO_FILES = ("/proc", "/sys", "/dev", "/run")
_DISKS = "/run/media"  # removable ones, which do hold files
_NO_FILES_TYPES = {"autofs", "binfmt_misc", "bpf", "cgroup", "cgroup2", "configfs", "debugfs", "devpts", "devtmpfs",
                   "efivarfs", "fusectl", "hugetlbfs", "mqueue", "nsfs", "proc", "pstore", "securityfs", "sysfs",
                   "tracefs"}  # fmt: skip
_MOST_COPIED_BYTES = 64 << 20  # of files beside a mount point, where no overlay is possible
_MOST_LOOKING_S = 0.1  # for folders of others, under each overlay
_DEPTH = 3  # of folders that are looked at where the program is not expected to write
_MOST_S = 10.0  # for what runs in a view to be gone


class NoViewError(Exception):
    """No view can be made, and why."""


def main() -> None:
    """Make the view that the first argument describes, and keep it while the standard input is open."""
    wish = json.loads(sys.argv[1])
    try:
        view = _View(**wish)
        answer: dict[str, object] = {"overlays": view.make(), "temporary": view.temporary}
    except (NoViewError, OSError, KeyError) as error:
        answer = {"why": str(error)}
    with suppress(BrokenPipeError):
        print(json.dumps(answer), flush=True)
    if "overlays" in answer:
        sys.stdin.buffer.read()
        # What still runs in this view is killed: after a kill of the capture, nobody else would do it.
        namespace, ends = os.readlink("/proc/self/ns/mnt"), time.monotonic() + _MOST_S
        killed_any = True
        while killed_any and time.monotonic() < ends:
            killed_any = False
            for process in filter(str.isdecimal, os.listdir("/proc")):
                with suppress(OSError):  # it has ended, or is another user's
                    if int(process) != os.getpid() and os.readlink(f"/proc/{process}/ns/mnt") == namespace:
                        os.kill(int(process), signal.SIGKILL)
                        killed_any = True
            time.sleep(0.005 * killed_any)


class _View:
    """The new root, while it is made below `home`: `through` is shown as it is, `vital` must have an overlay.

    `temporary` is a folder for temporary files under the same overlay as the first of `vital`; empty if there is none.
    """

    temporary = ""

    def __init__(self, home: str, through: list[str], vital: list[str]) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._home, self._through, self._vital = home, through, vital
        self._root = os.path.join(home, "root")
        self._knows_all = True
        self._overlays: list[tuple[str, str]] = []

    def make(self) -> list[tuple[str, str]]:
        """The overlays: where each is, and the folder of what is written there, the innermost first."""
        self._is_users = not self._unshare()
        self._mount(None, "/", flags=_MS_REC | _MS_PRIVATE)
        outside = {vital: os.stat(vital).st_dev for vital in self._vital}
        os.mkdir(self._root)
        self._types: dict[str, str] = {}  # of the file system at each mount point that has a path
        with open("/proc/self/mountinfo", "rb") as file:
            for line in file:
                mount_fields, _, type_fields = line.partition(b" - ")
                point = os.fsdecode(mount_fields.split()[4].decode("unicode_escape").encode("latin-1"))
                self._types[point] = type_fields.split()[0].decode()
        self._points = sorted(self._types)
        self._show("/")
        # Sockets that have a path: through an overlay, nobody who listens at one can be reached.
        with open("/proc/net/unix", "rb") as file:
            paths = {os.fsdecode(line.split(maxsplit=7)[7].rstrip(b"\n")) for line in file if b" /" in line}
        sockets = [path for path in paths if os.access(path, os.W_OK) and stat.S_ISSOCK(os.stat(path).st_mode)]
        for path in sorted(sockets):
            if not path.startswith(tuple(f"{folder}/" for folder in (*_NO_FILES, *self._through))):
                with suppress(OSError):  # its folder is not shown
                    self._bind(path)
        for path in self._through:
            if os.path.isdir(path) and os.path.isdir(self._in_root(path)):
                self._bind(path, recursive=not _is_below(self._home, path))
        os.chdir(self._root)
        _check(self._libc.syscall(_PIVOT_ROOT[os.uname().machine], b".", b"."), "pivot_root")
        _check(self._libc.umount2(b".", _MNT_DETACH), "umount")
        os.chdir("/")
        for vital, device in outside.items():
            if os.stat(vital).st_dev == device and not os.statvfs(vital).f_flag & os.ST_RDONLY:
                raise NoViewError(f"{vital} is not covered")
        return sorted(self._overlays, reverse=True)

    def _unshare(self) -> bool:
        """Take a mount namespace; returns whether this process may mount without a user namespace."""
        if self._libc.unshare(_CLONE_NEWNS) == 0:
            return True
        user, group = os.getuid(), os.getgid()
        begin, ready = os.pipe(), os.pipe()
        if not (child := os.fork()):  # only who is outside may give the namespace all users and groups
            os.read(begin[0], 1)
            os.write(ready[1], b"all" if _give_all(os.getppid()) else b"one")
            os._exit(0)
        status = self._libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNS)
        number = ctypes.get_errno()
        os.write(begin[1], b".")
        self._knows_all = os.read(ready[0], 3) == b"all"
        os.waitpid(child, 0)
        ctypes.set_errno(number)
        _check(status, "unshare")
        if not self._knows_all:
            maps = ("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")
            for name, text in maps:
                with open(f"/proc/self/{name}", "w") as file:
                    file.write(text)
        return False

    def _show(self, path: str) -> None:
        """Make what is at that path visible in the new root, where something is to mount it on already."""
        points_below = [point for point in self._points if _is_below(point, path) and point != path]
        kind = self._types.get(path, "")
        if path in ("/proc", "/sys", "/dev") or not os.path.isdir(path):
            self._bind(path)
            if os.path.isfile(path) and os.access(path, os.W_OK):
                self._make_read_only(path)  # a file that is mounted by itself, as in containers, has no overlay
            return
        is_vital = any(_is_below(vital, path) for vital in self._vital)
        if path in _NO_FILES or kind in _NO_FILES_TYPES:
            self._bind(path)
            if path == "/run":
                points_below = [point for point in points_below if _is_below(point, _DISKS)]
        elif os.statvfs(path).f_flag & os.ST_RDONLY and path != "/":
            self._bind(path)
        elif points_below and self._is_users:
            # The kernel refuses an overlay that would uncover what is below these mounts.
            self._show_parts(path)
            return
        else:
            try:
                self._cover(path)
            except OSError as error:
                if is_vital and not any(_is_below(vital, point) for vital in self._vital for point in points_below):
                    raise NoViewError(f"no overlay on {path} ({kind}): {error.strerror}") from None
                self._bind(path)
                self._make_read_only(path)
        visible: list[str] = []
        for point in points_below:
            is_covered = any(_is_below(point, visible_point) for visible_point in visible)
            if not is_covered and os.path.lexists(self._in_root(point)):
                self._show(point)
                visible.append(point)

    def _show_parts(self, path: str) -> None:
        """Make a folder that holds mount points from an empty one, a part at a time."""
        self._mount("tmpfs", self._in_root(path), "tmpfs", data="mode=755")
        copied = 0
        for entry in sorted(os.scandir(path), key=lambda entry: entry.name):
            target = self._in_root(entry.path)
            if entry.is_symlink():
                os.symlink(os.readlink(entry.path), target)
            elif entry.is_dir(follow_symlinks=False):
                os.mkdir(target)
                if os.access(entry.path, os.X_OK):
                    self._show(entry.path)
            elif entry.is_file() and os.access(entry.path, os.W_OK):
                copied += entry.stat().st_size
                if copied > _MOST_COPIED_BYTES:
                    raise NoViewError(f"{path} holds both mount points and large files")
                with open(entry.path, "rb") as file, open(target, "wb") as copy:
                    copy.write(file.read())
                status = os.stat(entry.path)
                os.chmod(target, stat.S_IMODE(status.st_mode))
                os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
            else:
                open(target, "wb").close()
                self._bind(entry.path)
        os.chmod(self._in_root(path), _own_mode(path))

    def _cover(self, path: str) -> None:
        """Mount an overlay over that folder."""
        number = len(self._overlays)
        upper, work = (os.path.join(self._home, f"{kind}{number}") for kind in ("upper", "work"))
        for folder in (upper, work):
            if not os.path.isdir(folder):
                os.mkdir(folder)
        if self._is_users and not self._knows_all:
            os.chmod(upper, _own_mode(path))
            # The writable folders of other users and groups, and those that lead to a writable one: an overlay cannot
            # copy what belongs to anybody whom the user namespace does not know.
            for folder in _writable(path, [vital for vital in self._vital if _is_below(vital, path)]):
                parts = os.path.relpath(folder, path).split("/")
                for count in range(1, len(parts) + 1):
                    part = os.path.join(*parts[:count])
                    if not os.path.isdir(os.path.join(upper, part)):
                        os.mkdir(os.path.join(upper, part))
                        os.chmod(os.path.join(upper, part), _own_mode(os.path.join(path, part)))
        else:
            status = os.stat(path)
            os.chmod(upper, stat.S_IMODE(status.st_mode))
            os.chown(upper, status.st_uid, status.st_gid)
        working_folder = self._vital[0]
        if path != working_folder and _is_below(working_folder, path):
            self.temporary = os.path.join(path, TEMPORARY)
            os.mkdir(os.path.join(upper, TEMPORARY))
        escapes = str.maketrans({character: f"\\{character}" for character in "\\:,"})
        names = {"lowerdir": path, "upperdir": upper, "workdir": work}
        data = ",".join(f"{key}={value.translate(escapes)}" for key, value in names.items())
        mode_options = ",userxattr" if self._is_users else ",redirect_dir=on"
        self._mount("overlay", self._in_root(path), "overlay", data=data + mode_options)
        self._overlays.append((path, upper))

    def _bind(self, path: str, recursive: bool = True) -> None:
        self._mount(path, self._in_root(path), flags=_MS_BIND | (_MS_REC if recursive else 0))

    def _make_read_only(self, path: str) -> None:
        flags = os.statvfs(path).f_flag & (2 | 4 | 8 | 1024 | 2048)  # nosuid, nodev, noexec, noatime, nodiratime
        if os.statvfs(path).f_flag & 4096:  # ST_RELATIME
            flags |= 1 << 21
        self._mount(None, self._in_root(path), flags=_MS_REMOUNT | _MS_BIND | _MS_RDONLY | flags)

    def _in_root(self, path: str) -> str:
        return self._root if path == "/" else self._root + path

    def _mount(self, source: str | None, target: str, kind: str | None = None, flags: int = 0, data: str = "") -> None:
        texts = [None if text is None else os.fsencode(text) for text in (source, target, kind)]
        status = self._libc.mount(*texts, ctypes.c_ulong(flags), os.fsencode(data) if data else None)
        _check(status, f"mount {target}")


def _give_all(process: int) -> bool:
    """Let the user namespace of that process know every user and group that this one knows, if this one may do so."""
    try:
        for name in ("uid_map", "gid_map"):
            with open(f"/proc/self/{name}") as file:
                extents = [line.split() for line in file]
            with open(f"/proc/{process}/{name}", "w") as file:
                file.write("".join(f"{first} {first} {count}\n" for first, _, count in extents))
    except OSError:
        return False
    return True


def _own_mode(path: str) -> int:
    """The mode of a folder of the user's own in which the user may do the same as in that one."""
    status = os.stat(path)
    if status.st_uid == os.getuid():
        return stat.S_IMODE(status.st_mode)
    rights = sum(right << 6 for right in (os.R_OK, os.W_OK, os.X_OK) if os.access(path, right))
    return stat.S_IMODE(status.st_mode) & ~(stat.S_IRWXU | stat.S_ISUID | stat.S_ISGID) | rights


def _writable(top: str, vital: list[str]) -> list[str]:
    """The writable folders below `top` that do not belong to the user and the user's group, or lie in one that does
    not: near the top, and in vital folders, as far as that takes little time."""
    own_ids, ends = (os.getuid(), os.getgid()), time.monotonic() + _MOST_LOOKING_S
    writable = [vital for vital in vital if vital != top]
    waiting = [(folder, True) for folder in vital] + [(top, False)]
    for folder, is_vital in waiting:  # the list grows meanwhile: the nearest folders come first
        if time.monotonic() > ends:
            break
        with suppress(OSError):
            for entry in os.scandir(folder):
                if not entry.is_dir(follow_symlinks=False) or os.path.ismount(entry.path):
                    continue
                status = entry.stat(follow_symlinks=False)
                is_own = (status.st_uid, status.st_gid) == own_ids
                if not (is_own and (is_vital or folder == top)) and os.access(entry.path, os.W_OK):
                    writable.append(entry.path)
                if is_vital or (not is_own and entry.path.count("/") - top.count("/") < _DEPTH):
                    waiting.append((entry.path, is_vital))
    return writable


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _check(status: int, operation: str) -> None:
    if status:
        number = ctypes.get_errno()
        raise OSError(number, f"{operation}: {os.strerror(number)}")


if __name__ == "__main__":
    main()
