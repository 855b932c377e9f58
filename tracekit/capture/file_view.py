"""The copy-on-write view in which a pass runs, seen from outside: made before it, and read once it has ended; and what
became of the files that passes wrote, in one sentence of each kind.
"""

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
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from tracekit.base.workspace import temporary_home, workspace
from tracekit.capture.child import file_view as holder
from tracekit.capture.job import Job, PassResult, Written
from tracekit.capture.journal import JOURNAL, Undone, data, read
from tracekit.run import Effective

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
_MAX_NAMED_FILES = 3  # in a sentence


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
                links = (name for name in folders if os.path.islink(os.path.join(folder, name)))
                for name in [*names, *links]:
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
    if sys.platform != "linux" or os.environ.get(SWITCH) == "off":
        why_none = f"{SWITCH}=off" if sys.platform == "linux" else "only Linux has them"
    if job.in_place or why_none:
        yield FileOverlay([], "" if job.in_place else why_none)
        return
    home = Path(tempfile.mkdtemp(prefix="view-", dir=folder))
    vital = [os.getcwd(), *([] if job.module else [os.path.dirname(os.path.realpath(job.program))])]
    own_folders = filter(None, [job.folder, job.caches, job.headers, shared_bytecode()])
    through = {os.path.realpath(path) for path in (str(folder), *own_folders, *also_through, *caches(vital))}
    wish = {"home": str(home), "through": sorted(through), "vital": vital}
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


def in_view(files: FileOverlay, job: Job) -> Written:
    """Keep the data that the program prepared, and let the view take the rest with it.

    A script's data is what it made before its first step and read back; a recipe's is every new file, because its
    contract is to write nothing else.
    """
    is_data: Callable[[str], bool] = lambda _: True  # noqa: E731
    if job.is_script:
        journal = Path(job.journal, JOURNAL)
        is_data = data([*read(journal)])
        journal.unlink(missing_ok=True)
    kept_paths = [path for path in files.new() if is_data(path) and files.keep(path)]
    return Written(discarded=files.discarded(), kept=sorted(kept_paths) if job.is_script else [])


def without_view(why: str, files: Undone, changed: list[str]) -> Written:
    """What a journal undid. `changed` lists files whose content differs, whatever wrote them."""
    other_paths = [path for path in changed if path not in files.prepared_data and path not in files.failed]
    return Written(undone=files.undone, kept=files.prepared_data, failed=files.failed, changed=other_paths, no_view=why)


def with_files(effective: Effective, results: Iterable[PassResult]) -> Effective:
    """With a sentence for each kind of thing that happened to the files of these passes."""
    written = [result.written for result in results]
    discarded, undone, kept, changed = (
        [*dict.fromkeys(path for pass_files in written for path in getattr(pass_files, kind))]
        for kind in ("discarded", "undone", "kept", "changed")
    )
    failed = {path: why for pass_files in written for path, why in pass_files.failed.items()}
    notes, remarks = [], []
    if failed:
        files = _listed([f"{path} ({why})" for path, why in failed.items()])
        notes.append(f"what it wrote could not be undone: {files}")
    if changed:
        notes.append(
            f"files changed and were not put back: {_listed(changed)}. A library in C or another program wrote them, "
            "and later passes may find them changed"
        )
    if discarded:
        remarks.append(f"what it wrote was discarded: {_listed(discarded)} (--in-place keeps it)")
    if undone:
        remarks.append(f"what it wrote was undone: {_listed(undone)} (--in-place keeps it)")
    if undone or failed or changed:
        why = next(filter(None, (pass_files.no_view for pass_files in written)), "")
        remarks.append(f"it wrote to your own files, because there was no copy-on-write view of them ({why})")
    if kept:
        remarks.append(f"data that it prepared before its first step is left: {_listed(kept)}")
    return effective.plus(notes, remarks)


def _listed(paths: list[str]) -> str:
    """A few of the files, as one would type them in the current folder."""
    current_folder = f"{Path.cwd()}{os.sep}"
    names = [path.removeprefix(current_folder) for path in paths]
    rest = f" and {len(names) - _MAX_NAMED_FILES} more" if len(names) > _MAX_NAMED_FILES else ""
    return f"{', '.join(names[:_MAX_NAMED_FILES])}{rest}"
