"""Which trainings of this user are watched now, and how another process asks one of them for a trace.

Each watch has a folder of its own in the user's folder for state: what is watched, a request, and the answer to it.
Every file appears as a whole. The loop looks for a request between two steps; nothing is done to its process.
"""

import os
import shutil
import socket
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated, TypeVar

import msgspec

from tracekit.base.atomic import put
from tracekit.base.workspace import is_ours, state_folder

_KIND = "watches"
_ENTRY, _REQUEST, _ANSWERS = "watch.json", "request.json", "answer-*.json"
_MOST_BYTES = 65_536  # of a file that is read


class Entry(msgspec.Struct, frozen=True):
    """A training that is watched."""

    process: int
    began: int  # when the process did, as the system counts it: another one may get its number
    folder: str  # absolute: where its record and its traces are
    script: str = ""


class Request(msgspec.Struct, frozen=True):
    """That the next steps be traced."""

    token: Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-z]{1,32}\Z")]  # comes back in the answer
    reason: str = "snap"


class Answer(msgspec.Struct, frozen=True):
    """What became of a request: the path of the trace, or why there is none."""

    token: str
    trace: str = ""
    why: str = ""


_File = TypeVar("_File", Entry, Request, Answer)


class Desk:
    """The folder of one watch, where requests are put and answered."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._request = folder / _REQUEST
        self._request_path = str(self._request)

    @staticmethod
    def open(entry: Entry) -> "Desk":
        """Make the folder for a watch of this process; those of processes that ended are removed. Raises OSError and
        NoFolderError."""
        home = state_folder(_KIND)
        for desk, other in _all(home):
            if not is_running(other):
                desk.remove()
        for folder in _left(home):
            Desk(folder).remove()
        folder = home / _name(entry.process)
        folder.mkdir(mode=0o700, exist_ok=True)
        desk = Desk(folder)
        for path in (desk._request, *folder.glob(_ANSWERS)):
            path.unlink(missing_ok=True)
        put(folder / _ENTRY, msgspec.json.encode(entry))
        return desk

    def ask(self, request: Request) -> bool:
        """Put a request there; False if another one waits there to be taken. Raises OSError."""
        content = msgspec.json.encode(request)
        part = self._request.with_name(f"request.{request.token}.part")
        try:
            part.write_bytes(content)
            os.link(part, self._request)
        except FileExistsError:
            return False
        except OSError:  # the file system has no links
            put(self._request, content)
        finally:
            part.unlink(missing_ok=True)
        return True

    def requested(self) -> Request | None:
        """The request, which is taken away; None, and a few µs, if there is none."""
        if not os.access(self._request_path, os.F_OK):
            return None
        request = _read(self._request, Request)
        self._request.unlink(missing_ok=True)
        return request

    def answer(self, answer: Answer) -> None:
        """Put the answer there. Raises OSError."""
        put(self._path_of(answer.token), msgspec.json.encode(answer))

    def answered(self, request: Request) -> Answer | None:
        """The answer to this request, which is taken away; None if there is none yet."""
        path = self._path_of(request.token)
        answer = _read(path, Answer)
        if answer is None:
            return None
        path.unlink(missing_ok=True)
        if not self.is_open and not self._has_answers():
            self.remove()
        return answer

    @property
    def is_open(self) -> bool:
        """Whether the watch goes on."""
        return os.path.exists(self._folder / _ENTRY)

    def withdraw(self, request: Request) -> bool:
        """Take the request back; False if it is not there, because the loop has taken it."""
        if _read(self._request, Request) != request:
            return False
        self._request.unlink(missing_ok=True)
        return True

    def close(self) -> None:
        """The watch is over. An answer that was not read yet stays for who asked."""
        if self._has_answers():
            with suppress(OSError):
                (self._folder / _ENTRY).unlink(missing_ok=True)
                self._request.unlink(missing_ok=True)
        else:
            self.remove()

    def remove(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _path_of(self, token: str) -> Path:
        # Each answer has a file of its own: the next one may be there before the last is read.
        return self._folder / _ANSWERS.replace("*", token)

    def _has_answers(self) -> bool:
        return any(self._folder.glob(_ANSWERS))


def running() -> list[tuple[Desk, Entry]]:
    """The watches of this user on this machine whose processes run. Raises NoFolderError."""
    return [(desk, entry) for desk, entry in _all(state_folder(_KIND)) if is_running(entry)]


def is_running(entry: Entry) -> bool:
    """Whether the process of the watch, and no other one of its number, still runs."""
    return began(entry.process) == entry.began


def began(process: int) -> int | None:
    """When the process began, in the system's ticks; 0 where that cannot be asked; None if there is no such process."""
    try:
        # Its name, in parentheses, may contain anything.
        fields = Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()
        return None if fields[0] in (b"Z", b"X") else int(fields[19])
    except (OSError, IndexError, ValueError):
        if os.path.isdir("/proc/self"):
            return None
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return None
    except OSError:
        pass  # another user's
    return 0


def is_others(process: int) -> bool:
    """Whether the process is known to belong to another user."""
    with suppress(OSError):
        return not is_ours(os.stat(f"/proc/{process}"))
    return False


def _all(home: Path) -> Iterator[tuple[Desk, Entry]]:
    prefix = _name("")
    for folder in [*home.iterdir()]:
        entry = _read(folder / _ENTRY, Entry) if folder.name.startswith(prefix) else None
        if entry is not None and folder.name == _name(entry.process):
            yield Desk(folder), entry


def _left(home: Path) -> Iterator[Path]:
    """Folders with answers that nobody read, of processes that ended."""
    prefix = _name("")
    for folder in [*home.iterdir()]:
        process = folder.name.removeprefix(prefix)
        if folder.name != _name(process) or not process.isdecimal() or os.path.exists(folder / _ENTRY):
            continue
        if began(int(process)) is None:
            yield folder


def _name(process: int | str) -> str:
    # A home may be shared by machines, each of which counts its own processes.
    return f"{socket.gethostname().replace(os.sep, '-')}-{process}"


def _read(path: Path, kind: type[_File]) -> _File | None:
    with suppress(OSError, msgspec.MsgspecError):
        if stat.S_ISREG(path.lstat().st_mode):
            with open(path, "rb") as file:
                return msgspec.json.decode(file.read(_MOST_BYTES), type=kind)
    return None
