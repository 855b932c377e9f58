"""Restores the user's files as they were before passes that ran without a view, from their journal; and says, in
one sentence of each kind for all passes, what became of the files that passes wrote.
"""

import errno
import os
import shutil
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import assert_never

from msgspec import Struct, field

from tracekit.capture import journal
from tracekit.capture.file_view import FileOverlay
from tracekit.capture.job import Job, PassResult, Written
from tracekit.run import Effective

_MAX_NAMED_FILES = 3  # files in a sentence


class Undone(Struct):
    """What was undone of the files that passes wrote."""

    undone: list[str] = field(default_factory=list)
    # What the program prepared and read before its first step.
    prepared_data: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)  # and why

    @property
    def is_whole(self) -> bool:
        """Whether nothing is left to be restored."""
        return not self.failed


def undo(folder: Path, states: dict[str, journal.State] | None = None) -> Undone:
    """Undo the journal of this folder, latest entries first.

    With `states`, those in which the passes left the files, a file in any other state is not touched, and neither is
    anything that was moved from or to it. A backup is not copied but moved into its place, which needs no space on the
    disk and leaves no file half written; a backup that was not used remains.
    """
    entries = [*journal.read(folder / journal.JOURNAL)]
    result, is_data = Undone(), data(entries)
    spared = {path for path in journal.paths(entries) if is_data(path)}
    result.failed = {} if states is None else _changed_since(entries, states)
    handled: set[int] = set()  # what an undoing that was interrupted has undone, by number
    with suppress(OSError):
        handled = {int(line) for line in (folder / journal.HANDLED).read_text().split()}
    for number, entry in reversed([*enumerate(entries)]):
        if number in handled or not result.failed.keys().isdisjoint(journal.paths([entry])):
            continue
        try:
            if _undo(entry, spared, is_live=states is None):
                result.undone.append(entry.path)
            if states is not None:
                states |= {path: journal.state(path) for path in journal.paths([entry])}
                journal.put_states(folder, states)
            # If this process is killed, the next one must not begin anew: it would remove what has been moved back.
            with open(folder / journal.HANDLED, "a") as file:
                file.write(f"{number}\n")
        except OSError as error:
            result.failed[entry.path] = error.strerror or str(error)
    for entry in entries:
        if isinstance(entry, journal.Changed) and entry.path in result.failed:
            result.failed[entry.path] += f"; as it was before: {entry.backup}" * (
                entry.backup not in result.failed[entry.path]
            )
    result.undone = [*dict.fromkeys(path for path in reversed(result.undone) if path not in result.failed)]
    result.prepared_data = sorted(path for path in spared if os.path.lexists(path))
    if result.is_whole:
        discard(folder)
    return result


def discard(folder: Path) -> None:
    """Remove the journal, and the backups that were not used."""
    for entry in journal.read(folder / journal.JOURNAL):
        if isinstance(entry, journal.Changed):
            with suppress(OSError):
                os.unlink(entry.backup)
            with suppress(OSError):
                os.rmdir(os.path.dirname(entry.backup))
    for name in (journal.JOURNAL, journal.LEFT, journal.HANDLED):
        (folder / name).unlink(missing_ok=True)


def _changed_since(entries: Sequence[journal.Entry], states: dict[str, journal.State]) -> dict[str, str]:
    """The files that are not as the passes left them, with all that were moved from or to these."""
    why = "it has changed since, or its state when the capture ended is not known"
    changed = {
        path: why
        for path in journal.paths(entry for entry in entries if not isinstance(entry, journal.Read))
        if not os.path.isdir(path) and (path not in states or states[path] != journal.state(path))
    }
    about = Counter(path for entry in entries for path in journal.paths([entry]))
    for entry in entries:  # it was about to be changed, and was not
        if about[entry.path] == 1 and (
            (isinstance(entry, journal.Changed) and _is_as_before(entry))
            or (isinstance(entry, journal.ChangedStatus) and _has_status(entry))
        ):
            changed.pop(entry.path, None)
    moved = [{entry.path, entry.to} for entry in entries if isinstance(entry, journal.Renamed)]
    while connected := {path for pair in moved if pair & changed.keys() for path in pair} - changed.keys():
        changed |= dict.fromkeys(connected, why)
    return changed


def data(entries: Sequence[journal.Entry]) -> Callable[[str], bool]:
    """Whether a path is data that the program made before its first step and read back, or lies beside such data.

    Beside means in a folder that it made then. A later pass finds it, as a second run would, so that no data set is
    fetched again for each pass.
    """
    new_files = {entry.path for entry in entries if isinstance(entry, journal.Made) and entry.preparing}
    new_files |= {entry.to for entry in entries if isinstance(entry, journal.Renamed) and entry.preparing}
    read = {entry.path for entry in entries if isinstance(entry, journal.Read)}
    folders = {entry.path for entry in entries if isinstance(entry, journal.MadeFolder) and entry.preparing}
    tops = {folder for folder in folders if os.path.dirname(folder) not in folders}
    with_data = tuple(f"{top}{os.sep}" for top in tops if any(path.startswith(f"{top}{os.sep}") for path in read))
    return lambda path: path in new_files and (path in read or path.startswith(with_data))


def _undo(entry: journal.Entry, spared: set[str], is_live: bool) -> bool:
    """Undo one entry; returns whether there was anything to do.

    While the capture runs, a folder that the program made is removed with what other programs wrote into it.
    """
    match entry:
        case journal.Made(path):
            return path not in spared and _remove(path)
        case journal.MadeFolder(path):
            if is_live:
                return _remove_folder(path, spared)
            with suppress(OSError):  # it holds data, or what something else than the program's Python code wrote
                os.rmdir(path)
                return True
            return False
        case journal.Changed():
            return _restore(entry)
        case journal.ChangedLink(path, target=target):
            _remove(path)
            os.symlink(target, path)
            return True
        case journal.ChangedStatus(path, mode=mode, owner=owner, group=group):
            if _has_status(entry):
                return False
            os.chown(path, owner, group)
            os.chmod(path, mode)
            return True
        case journal.Renamed(path, to=to, inode=inode):
            if to in spared or not os.path.lexists(to):
                return False
            if os.path.lexists(path):
                if os.lstat(path).st_ino == inode:
                    return False  # the program was killed before it moved the file
                raise FileExistsError(errno.EEXIST, f"{to} was moved from there, and there is another file now")
            os.rename(to, path)
            return True
        case journal.RemovedFolder(path):
            os.makedirs(path, exist_ok=True)
            return False
        case journal.Read():
            return False
        case _:
            assert_never(entry)


def _remove(path: str) -> bool:
    if not os.path.lexists(path) or (os.path.isdir(path) and not os.path.islink(path)):
        return False
    os.unlink(path)
    return True


def _remove_folder(path: str, spared: set[str]) -> bool:
    removed = False
    for folder, folders, files in os.walk(path, topdown=False):
        for name in [*files, *(subfolder for subfolder in folders if os.path.islink(os.path.join(folder, subfolder)))]:
            if (file := os.path.join(folder, name)) not in spared:
                os.unlink(file)
        if not os.listdir(folder):
            os.rmdir(folder)
            removed = True
    return removed


def _has_status(entry: journal.ChangedStatus) -> bool:
    status = os.stat(entry.path)
    return (stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid) == (entry.mode, entry.owner, entry.group)


def _is_as_before(entry: journal.Changed) -> bool:
    return os.path.isfile(entry.path) and journal.digest(entry.path) == entry.digest


def _restore(entry: journal.Changed) -> bool:
    """Move the backup to where the file was, if it is whole."""
    if not os.path.exists(entry.backup):
        if _is_as_before(entry):
            return False  # an undoing that was interrupted has moved it already
        raise FileNotFoundError(errno.ENOENT, f"its backup is gone: {entry.backup}")
    if journal.digest(entry.backup) != entry.digest:
        raise OSError(errno.EIO, f"its backup is damaged: {entry.backup}")
    os.makedirs(os.path.dirname(entry.path), exist_ok=True)
    os.utime(entry.backup, ns=entry.times)
    if os.path.isfile(entry.path) and os.stat(entry.path).st_nlink > 1:
        _restore_content(entry)  # the other names of the file are to have it back, too
    else:
        try:
            os.replace(entry.backup, entry.path)
        except OSError as error:
            if error.errno != errno.EXDEV:  # two mounts of one disk
                raise
            _restore_content(entry)
    with suppress(OSError):
        os.rmdir(os.path.dirname(entry.backup))
    return True


def _restore_content(entry: journal.Changed) -> None:
    """Copy the backup into the file, and remove it once the file is as it was."""
    with open(entry.backup, "rb") as backup, open(entry.path, "r+b" if os.path.exists(entry.path) else "xb") as file:
        shutil.copyfileobj(backup, file)
        file.truncate()
        os.fsync(file.fileno())
    shutil.copystat(entry.backup, entry.path)
    if not _is_as_before(entry):
        raise OSError(errno.EIO, f"it could not be written whole: its backup is {entry.backup}")
    os.unlink(entry.backup)


def back_up(path: str, folder: Path, name: str) -> str:
    """Copy the file to where it can be moved back from, safe from a power failure; raises OSError if it cannot be."""
    backups = folder / journal.BACKUPS
    if os.stat(folder).st_dev != (device := os.stat(path).st_dev):
        # As far up as possible: a program may remove the folder of the file.
        parents = [
            parent for parent in Path(path).parents if os.stat(parent).st_dev == device and os.access(parent, os.W_OK)
        ]
        backups = (parents or [Path(path).parent])[-1] / f"{journal.BESIDE}-{folder.name}"
    backups.mkdir(mode=0o700, exist_ok=True)
    backup = str(backups / name)
    try:
        shutil.copy2(path, backup)
        with suppress(OSError):
            status = os.stat(path)
            os.chown(backup, status.st_uid, status.st_gid)  # it is moved back one day
        for target in (backup, str(backups)):
            handle = os.open(target, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
    except OSError:
        with suppress(OSError):
            os.unlink(backup)
        with suppress(OSError):
            os.rmdir(backups)
        raise
    return backup


def in_view(files: FileOverlay, job: Job) -> Written:
    """Keep the data that the program prepared, and let the view take the rest with it.

    A script's data is what it made before its first step and read back; a recipe's is every new file, because its
    contract is to write nothing else.
    """
    is_data: Callable[[str], bool] = lambda _: True  # noqa: E731
    if job.is_script:
        is_data = data([*journal.read(Path(job.journal, journal.JOURNAL))])
        Path(job.journal, journal.JOURNAL).unlink(missing_ok=True)
    kept_paths = [path for path in files.new() if is_data(path) and files.keep(path)]
    return Written(discarded=files.discarded(), kept=sorted(kept_paths) if job.is_script else [])


def without_view(why: str, files: Undone, changed: list[str]) -> Written:
    """What a journal undid. `changed` lists files whose content differs, whatever wrote them."""
    other_paths = [path for path in changed if path not in files.prepared_data and path not in files.failed]
    return Written(undone=files.undone, kept=files.prepared_data, failed=files.failed, changed=other_paths, no_view=why)


def with_files(effective: Effective, results: Iterable[PassResult]) -> Effective:
    """With a sentence for each kind of thing that happened to the files of these passes."""
    written = [result.written for result in results]
    return effective.plus(_notes(written), _remarks(written))


def _remarks(written: Sequence[Written]) -> Iterator[str]:
    if paths := _joined(pass_files.discarded for pass_files in written):
        yield f"what it wrote was discarded: {_listed(paths)} (--in-place keeps it)"
    if paths := _joined(pass_files.undone for pass_files in written):
        yield f"what it wrote was undone: {_listed(paths)} (--in-place keeps it)"
    if any(pass_files.undone or pass_files.failed or pass_files.changed for pass_files in written):
        why = next(filter(None, (pass_files.no_view for pass_files in written)), "")
        yield f"it wrote to your own files, because there was no copy-on-write view of them ({why})"
    if paths := _joined(pass_files.kept for pass_files in written):
        yield f"data that it prepared before its first step is left: {_listed(paths)}"


def _notes(written: Sequence[Written]) -> Iterator[str]:
    failed = {path: why for pass_files in written for path, why in pass_files.failed.items()}
    if failed:
        yield f"what it wrote could not be undone: {_listed([f'{path} ({why})' for path, why in failed.items()])}"
    if paths := _joined(pass_files.changed for pass_files in written):
        yield (
            f"files changed and were not put back: {_listed(paths)}. A library in C or another program wrote them, "
            "and later passes may find them changed"
        )


def _joined(lists: Iterable[list[str]]) -> list[str]:
    return [*dict.fromkeys(path for paths in lists for path in paths)]


def _listed(paths: list[str]) -> str:
    """A few of the files, as one would type them in the current folder."""
    current_folder = f"{Path.cwd()}{os.sep}"
    names = [path.removeprefix(current_folder) for path in paths]
    rest = f" and {len(names) - _MAX_NAMED_FILES} more" if len(names) > _MAX_NAMED_FILES else ""
    return f"{', '.join(names[:_MAX_NAMED_FILES])}{rest}"
