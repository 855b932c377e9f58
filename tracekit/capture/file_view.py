"""The copy-on-write view in which a pass runs, seen from outside: made before it, and read once it has ended."""

import atexit
import errno
import filecmp
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from tracekit.base.workspace import temporary_home, workspace
from tracekit.capture.child import file_view as holder
from tracekit.capture.job import Job, PassResult

SWITCH = "TRACEKIT_VIEW"  # "off": passes write to the user's files, and a journal undoes it
VIEW = "view"  # in the scratch folder of a pass: the process that holds its view
_DENIED = re.compile(rf"\[Errno (?:{errno.EACCES}|{errno.EPERM}|{errno.EROFS})\] [^:\n]*: '(?P<path>[^'\n]+)'")
_BYTECODE = ("__pycache__", ".pyc")  # in a path: what Python keeps for itself, wherever it does
BYTECODE = "PYTHONPYCACHEPREFIX"  # the folder in which Python keeps it, where not beside the sources
_CACHES = (
    *("XDG_CACHE_HOME", "TORCH_HOME", "HF_HOME", "HF_DATASETS_CACHE", "CUDA_CACHE_PATH", "CUDA_MPS_PIPE_DIRECTORY"),
    BYTECODE,
)
_USUAL_CACHES = ("~/.cache", "~/.nv", "/tmp/nvidia-mps")


class FileOverlay:
    """Where the overlays of a view keep what is written in it; without a view, `why` there is none."""

    def __init__(self, overlays: list[tuple[str, str]], why: str = "", temporary: str = "") -> None:
        self.why, self.exists = why, bool(overlays)
        self.temporary = temporary  # the folder for temporary files, if the view has one
        self._overlays = [(point, Path(upper)) for point, upper in overlays]  # the innermost first

    def discarded(self) -> list[str]:
        """The user's files that differ in the view: changed, new or gone. Folders are not listed."""
        return sorted(
            path
            for path, upper in self._files()
            if not any(part in path for part in _BYTECODE) and _differs(path, upper, os.lstat(upper))
        )

    def new(self) -> Iterator[str]:
        """The files that exist in the view only."""
        for path, upper in self._files():
            if not os.path.lexists(path) and _is_content(os.lstat(upper)):
                yield path

    def keep(self, path: str) -> bool:
        """Put a new file of the view where it was written, whole or not at all, and in place of none."""
        point, folder = next((point, upper) for point, upper in self._overlays if holder._is_below(path, point))
        upper = folder / os.path.relpath(path, point)
        try:
            if not _is_content(os.lstat(upper)):
                return False
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with _beside(upper, path) as copy:
                os.link(copy, path, follow_symlinks=False)
        except OSError:
            return False
        return True

    def _files(self) -> Iterator[tuple[str, Path]]:
        for point, upper in self._overlays:
            for folder, folders, names in os.walk(upper):
                for name in [
                    *names,
                    *(subfolder for subfolder in folders if os.path.islink(os.path.join(folder, subfolder))),
                ]:
                    file = Path(folder, name)
                    path = os.path.join(point, file.relative_to(upper))
                    is_temporary = self.temporary and holder._is_below(path, self.temporary)
                    if not is_temporary and path not in (mount for mount, _ in self._overlays):
                        yield path, file


@contextmanager
def view(job: Job, folder: Path, why_none: str = "", also_through: Sequence[str] = ()) -> Iterator[FileOverlay]:
    """A view for the passes that `folder` is the scratch folder of; other folders may go through it, too. A job that
    writes in place needs none."""
    (folder / VIEW).unlink(missing_ok=True)
    if job.in_place:
        yield FileOverlay([])
        return
    if sys.platform != "linux" or os.environ.get(SWITCH) == "off":
        why_none = f"{SWITCH}=off" if sys.platform == "linux" else "only Linux has them"
    if why_none:
        yield FileOverlay([], why_none)
        return
    home = Path(tempfile.mkdtemp(prefix="view-", dir=folder))
    vital = [os.getcwd(), *([] if job.module else [os.path.dirname(os.path.realpath(job.program))])]
    wish = {
        "home": str(home),
        "through": sorted(
            {
                os.path.realpath(path)
                for path in (
                    str(folder),
                    *filter(None, [job.folder, job.caches, job.headers, shared_bytecode()]),
                    *also_through,
                    *caches(vital),
                )
            }
        ),
        "vital": vital,
    }
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", str(holder.__file__), json.dumps(wish)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # it ends with this process, not before it
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        answer = json.loads(process.stdout.readline() or b'{"why": "its process died"}')
        if "overlays" in answer:
            (folder / VIEW).write_text(str(process.pid))
        overlays = [tuple(overlay) for overlay in answer.get("overlays", [])]
        yield FileOverlay(overlays, answer.get("why", ""), answer.get("temporary", ""))
    finally:
        (folder / VIEW).unlink(missing_ok=True)
        process.stdin.close()
        process.stdout.close()
        process.wait()


@cache
def shared_bytecode() -> str:
    """A folder for bytecode that all passes of this process share, where torch was installed without any, as by uv;
    elsewhere empty. What passes write beside the packages is discarded, and compiling torch's Python takes longer than
    most of them."""
    torch = find_spec("torch")
    if BYTECODE in os.environ or torch is None or torch.cached is None or os.path.exists(torch.cached):
        return ""
    lasting = ExitStack()
    atexit.register(lasting.close)
    return str(lasting.enter_context(workspace(temporary_home("tracekit-passes"))))


def caches(vital: Sequence[str]) -> list[str]:
    """The folders of library caches and of services that exist: they are never part of a view. One that holds a vital
    folder is no cache: some people point HF_HOME at their whole disk."""
    candidates = [*filter(None, map(os.environ.get, _CACHES)), *map(os.path.expanduser, _USUAL_CACHES)]
    folders = [path for name in candidates if os.path.isdir(path := os.path.realpath(name))]
    return [path for path in folders if not any(holder._is_below(os.path.realpath(folder), path) for folder in vital)]


def refusal(failed: PassResult, output: str) -> str:
    """Why the pass failed, in the system's words, if that may be because it ran in a view; else empty.

    A view refuses some moves from one folder to another, and to write what belongs to others. Which files these are is
    asked here, outside of it.
    """
    if failed.outcome == "ok":
        return ""
    messages = "\n".join([failed.error or "", failed.traceback, output])
    for number in (errno.EXDEV, errno.EOVERFLOW):
        if os.strerror(number) in messages:
            return os.strerror(number)
    for match in _DENIED.finditer(messages):
        path = os.path.realpath(match["path"])
        while not os.path.lexists(path):
            path = os.path.dirname(path)
        if os.access(path, os.W_OK) and not os.statvfs(path).f_flag & os.ST_RDONLY:
            return match[0]
    return ""


@contextmanager
def _beside(file: Path, path: str) -> Iterator[str]:
    """A name for the content on the file system of `path`: the file itself, or else a copy that is removed again."""
    folder, name = os.path.split(path)
    copy = os.path.join(folder, f".{name}.tracekit-{os.getpid()}")
    try:
        os.link(file, copy, follow_symlinks=False)
    except OSError as error:
        if error.errno not in (errno.EXDEV, errno.EPERM, errno.EOPNOTSUPP):
            raise
        shutil.copy2(file, copy, follow_symlinks=False)
    try:
        yield copy
    finally:
        with suppress(OSError):
            os.unlink(copy)


def _is_content(status: os.stat_result) -> bool:
    return stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode)


def _differs(path: str, upper: Path, after: os.stat_result) -> bool:
    """Whether the file in the view is not as outside: an overlay copies a file that is only opened for writing."""
    try:
        before = os.lstat(path)
    except OSError:
        return _is_content(after)
    if not _is_content(after) or stat.S_IFMT(before.st_mode) != stat.S_IFMT(after.st_mode):
        return True  # removed, or something else
    if stat.S_ISLNK(after.st_mode):
        return os.readlink(path) != os.readlink(upper)
    if (before.st_mode, before.st_size) != (after.st_mode, after.st_size):
        return True
    return before.st_mtime_ns != after.st_mtime_ns and not filecmp.cmp(path, upper, shallow=False)
