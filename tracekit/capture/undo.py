"""Restores the user's files as they were before a pass, from its journal."""

import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import assert_never

from tracekit.capture import journal


@dataclass
class Undone:
    """What was undone of the files that the pass wrote."""

    undone: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)  # data that the program prepared and read before its first step
    failed: dict[str, str] = field(default_factory=dict)  # and why

    def add(self, other: "Undone") -> None:
        """Add what was undone for another rank."""
        self.undone = [*dict.fromkeys([*self.undone, *other.undone])]
        self.left = sorted({*self.left, *other.left})
        self.failed |= other.failed


def undo(folder: Path) -> Undone:
    """Undo the journal of this folder, latest entries first. Each entry is undone only once."""
    entries = [*journal.read(folder / journal.JOURNAL)]
    done, is_data = Undone(), data(entries)
    spared = {each.to if isinstance(each, journal.Renamed) else each.path for each in entries}
    spared = {path for path in spared if is_data(path)}
    for entry in reversed(entries):
        try:
            if _undo(entry, folder / journal.BACKUPS, spared):
                done.undone.append(entry.path)
        except OSError as error:
            done.failed[entry.path] = error.strerror or str(error)
    done.undone = [*dict.fromkeys(reversed(done.undone))]
    done.left = sorted(path for path in spared if os.path.lexists(path))
    (folder / journal.JOURNAL).unlink(missing_ok=True)
    shutil.rmtree(folder / journal.BACKUPS, ignore_errors=True)
    return done


def data(entries: Sequence[journal.Entry]) -> Callable[[str], bool]:
    """Whether a path is data that the program made before its first step and read back, or lies beside such data.

    Beside means in a folder that it made then. A later pass finds it, as a second run would, so that no data set is
    fetched again for each pass.
    """
    made = {entry.path for entry in entries if isinstance(entry, journal.Made) and entry.preparing}
    made |= {entry.to for entry in entries if isinstance(entry, journal.Renamed) and entry.preparing}
    read = {entry.path for entry in entries if isinstance(entry, journal.Read)}
    folders = {entry.path for entry in entries if isinstance(entry, journal.MadeFolder) and entry.preparing}
    tops = {each for each in folders if os.path.dirname(each) not in folders}
    with_data = tuple(f"{top}{os.sep}" for top in tops if any(path.startswith(f"{top}{os.sep}") for path in read))
    return lambda path: path in made and (path in read or path.startswith(with_data))


def _undo(entry: journal.Entry, backups: Path, spared: set[str]) -> bool:
    """Undo one entry; returns whether there was anything to do."""
    match entry:
        case journal.Made(path):
            return path not in spared and _remove(path)
        case journal.MadeFolder(path):
            return _remove_folder(path, spared)
        case journal.Changed():
            _restore(entry, backups)
            return True
        case journal.ChangedLink(path, target=target):
            _remove(path)
            os.symlink(target, path)
            return True
        case journal.Renamed(path, to=to):
            if to in spared or not os.path.lexists(to):
                return False
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
    """Remove a folder with what programs other than Python wrote into it, but not the data."""
    removed = False
    for folder, folders, files in os.walk(path, topdown=False):
        for name in [*files, *(each for each in folders if os.path.islink(os.path.join(folder, each)))]:
            if (file := os.path.join(folder, name)) not in spared:
                os.unlink(file)
        if not os.listdir(folder):
            os.rmdir(folder)
            removed = True
    return removed


def _restore(entry: journal.Changed, backups: Path) -> None:
    os.makedirs(os.path.dirname(entry.path), exist_ok=True)
    if os.path.islink(entry.path):
        os.unlink(entry.path)
    shutil.copy2(backups / entry.backup, entry.path)
    os.utime(entry.path, ns=entry.times)
