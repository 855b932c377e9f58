"""Where a trace comes from – a file, standard input, a pipe, a folder of traces, a URL, all of which become local files
– and its unpacked bytes, however they were packed; damage ends that stream without an exception.
"""

import os
import re
import shutil
import sys
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from io import FileIO
from pathlib import Path
from queue import SimpleQueue
from threading import Semaphore, Thread
from types import TracebackType
from typing import IO, Any

from tracekit.base.workspace import workspace_anywhere
from tracekit.errors import TracekitError
from tracekit.errors.reading import (
    BombError,
    DirectoryGivenError,
    NoSuchFileError,
    NoTraceInsideError,
    SourceUnavailableError,
    UnreadableFileError,
)
from tracekit.installed import package_command

_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_PIECE = 256 << 10  # bytes decompressed at a time: they stay in the processor's cache
_PIECES_AHEAD = 16  # pieces that are unpacked before they are needed
_BYTES_NEAR_DAMAGE = 16 << 10  # packed bytes taken at a time near damage
_RATIO, _ALWAYS = 250, 4 << 30  # traces shrink 10 to 40 times, zip bombs 1000 times; 4 GiB are never refused
LIMIT = "TRACEKIT_MAX_BYTES"
Unpack = Callable[[FileIO], Iterator[bytes]]
STDIN = "-"
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]+:/{1,2}", re.IGNORECASE)  # Path makes one slash of two
_TRACE = re.compile(r".*\.(?:json(?:\.gz|\.zst|\.tmp)*|sqlite)", re.IGNORECASE)


class Damaged(Exception):  # noqa: N818 - a condition, not a failure: it never leaves this module
    """An archive that cannot be read on."""


class Source(AbstractContextManager["Source"]):
    """Unpacked bytes, read with `readinto`. `damage` says why they end early, if they do.

    An archive may unpack to `always` bytes (4 GiB), and to more where it shrank no more than traces do.
    """

    def __init__(self, path: Path, always: int | None = None) -> None:
        self._path = path
        try:
            self._file = _File(path)
        except FileNotFoundError:
            raise NoSuchFileError(path) from None
        except IsADirectoryError:
            raise DirectoryGivenError(path) from None
        except (OSError, ValueError) as error:
            raise UnreadableFileError(path, getattr(error, "strerror", None) or str(error)) from None
        self.size = os.fstat(self._file.fileno()).st_size  # of the file, in bytes as packed
        self._unpack, self._sip = _unpackers(self._file)
        self._pieces = self._unpack(self._file)
        if self.packed and self.size > _PIECE:  # of a smaller file, a thread takes longer to start than to unpack
            self._pieces = _ahead(self._pieces)
        self._rest = memoryview(b"")
        self._limit = int(os.environ.get(LIMIT) or max(always or _ALWAYS, _RATIO * self.size))
        self._delivered = 0
        self._rescued = False
        self.damage: str | None = None

    @property
    def packed(self) -> bool:
        """Whether the file is an archive."""
        return self._unpack is not _plain

    @property
    def position(self) -> int:
        """How much of the file has been read, in bytes as packed."""
        return self._file.position

    def readinto(self, view: memoryview) -> int:
        """Fill the view; less than all of it is filled only at the end of the stream. Raises BombError."""
        filled = 0
        while filled < len(view):
            if not len(self._rest):
                self._rest = memoryview(self._next())
                if not len(self._rest):
                    break
            count = min(len(self._rest), len(view) - filled)
            view[filled : filled + count] = self._rest[:count]
            self._rest = self._rest[count:]
            filled += count
        return filled

    def _next(self) -> bytes:
        try:
            piece = next(self._pieces, b"")
        except Damaged as damage:
            if self._rescued:
                return b""
            self._rescued, self.damage = True, str(damage)
            self._pieces = self._read_up_to_damage()
            piece = next(self._pieces, b"")
        except OSError as error:
            self.damage, piece = error.strerror or str(error), b""
        self._delivered += len(piece)
        if self._delivered > self._limit:
            raise BombError(self._path, self.size, self._limit, LIMIT)
        return piece

    def _read_up_to_damage(self) -> Iterator[bytes]:
        """The rest that the archive still yields, read byte by byte up to the damage."""
        skip = self._delivered
        self._file.seek(0)
        try:
            for piece in self._sip(self._file):
                if len(piece) > skip:
                    yield piece[skip:]
                skip = max(skip - len(piece), 0)
        except (Damaged, OSError):
            return

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(self._pieces, Generator):
            self._pieces.close()
        self._file.close()


class _File(FileIO):
    """A file that counts what is read of it: asking the system waits for the thread that reads."""

    position = 0

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(-1 if size is None else size)
        self.position += len(data)
        return data

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        self.position = super().seek(offset, whence)
        return self.position


def _unpackers(file: FileIO) -> tuple[Unpack, Unpack]:
    """What unpacks a file, and what does so near damage."""
    try:
        magic = file.read(4)
        file.seek(0)
    except OSError:
        return _plain, _plain
    packings = ((unpack, sip) for beginning, unpack, sip in _PACKINGS if magic.startswith(beginning))
    return next(packings, (_plain, _plain))


def _ahead(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The same pieces, unpacked by a thread that is ahead: unpacking needs no lock of the interpreter's."""
    room = Semaphore(_PIECES_AHEAD)
    chunks: SimpleQueue[bytes | BaseException | None] = SimpleQueue()
    is_wanted = True

    def make() -> None:
        outcome: BaseException | None = None
        try:
            for piece in pieces:
                room.acquire()
                if not is_wanted:
                    return
                chunks.put(piece)
        except BaseException as error:  # whoever reads gets it
            outcome = error
        chunks.put(outcome)

    maker = Thread(target=make, daemon=True)
    maker.start()
    try:
        while (piece := chunks.get()) is not None:
            if isinstance(piece, BaseException):
                raise piece
            room.release()
            yield piece
    finally:
        is_wanted = False
        room.release()
        maker.join()


def _plain(file: FileIO) -> Iterator[bytes]:
    while piece := file.read(_PIECE):
        yield piece


def _gunzip(file: FileIO) -> Iterator[bytes]:
    """One gzip member after another, by igzip: three times as fast as zlib."""
    from isal import igzip_lib

    broken: Any = (igzip_lib.IsalError, EOFError, ValueError)
    data = b""
    while data := data.lstrip(b"\0") or file.read(_PIECE):
        if data.strip(b"\0")[:2] not in (_GZIP, b"\x1f"):
            if data.strip(b"\0"):
                return  # trailing bytes that are not an archive: gzip ignores them, too
            continue
        member = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP)
        while not member.eof:
            if member.needs_input and not data:
                data = file.read(_PIECE)
                if not data:
                    raise Damaged("the archive ends early")
            try:
                piece = member.decompress(data, _PIECE)
            except broken as error:
                raise Damaged(f"the archive is damaged: {error}") from None
            data = b""
            if piece:  # nothing comes of a header that goes on in the next piece, and nothing means the end
                yield piece
        data = member.unused_data


def _gunzip_sips(file: FileIO) -> Iterator[bytes]:
    """The same by zlib, whose state can be copied: the damaged piece is read byte by byte."""
    member = zlib.decompressobj(31)
    while data := file.read(_BYTES_NEAR_DAMAGE):
        while data:
            before = member.copy()
            try:
                piece = member.decompress(data)
            except zlib.error:
                yield from _to_the_byte(before, data)
                return
            yield piece
            data = member.unused_data.lstrip(b"\0")
            if member.eof:
                member = zlib.decompressobj(31)


def _to_the_byte(member: "zlib._Decompress", data: bytes) -> Iterator[bytes]:
    for index in range(len(data)):
        try:
            piece = member.decompress(data[index : index + 1])
        except zlib.error:
            return
        yield piece
        if member.eof:
            member = zlib.decompressobj(31)


def _unzstd(file: FileIO, count: int = 0) -> Iterator[bytes]:
    """As many bytes at a time; without a number, a piece."""
    import pyarrow as pa

    unclosed = open(file.fileno(), "rb", buffering=0, closefd=False)  # noqa: SIM115 - Arrow closes what it is given
    stream = pa.CompressedInputStream(pa.PythonFile(unclosed, "r"), "zstd")
    try:
        while piece := stream.read(count or _PIECE):
            yield bytes(piece)
    except (OSError, pa.ArrowInvalid) as error:
        raise Damaged(f"the archive is damaged: {str(error).splitlines()[0]}") from None


_PACKINGS: tuple[tuple[bytes, Unpack, Unpack], ...] = (  # how a file begins, what unpacks it, and what does near damage
    (_GZIP, _gunzip, _gunzip_sips),
    (_ZSTD, _unzstd, partial(_unzstd, count=1)),
)


def is_address(path: Path) -> bool:
    """Whether it names something on another machine, as s3://bucket/trace.json.gz does."""
    return _ADDRESS.match(str(path)) is not None


@contextmanager
def local(path: Path, home: Path) -> Iterator[Path]:
    """The trace as a regular file; anything else is first copied into one, which can be read twice. Raises
    TracekitError."""
    if str(path) == STDIN:
        with _spooled(path, sys.stdin.buffer, home) as file:
            yield file
    elif is_address(path):
        with _fetched(path) as stream, _spooled(path, stream, home) as file:
            yield file
    elif os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):  # no error for a name too long
        with path.open("rb") as stream, _spooled(path, stream, home) as file:
            yield file
    else:
        yield path


def traces_in(folder: Path) -> list[Path]:
    """The traces of a folder, by name. Raises NoTraceInsideError if it holds none."""
    try:
        traces = sorted(path for path in folder.iterdir() if path.is_file() and _TRACE.fullmatch(path.name))
    except OSError as error:
        raise UnreadableFileError(folder, error.strerror or str(error)) from None
    names = {path.name for path in traces}
    traces = [path for path in traces if not (path.suffix == ".tmp" and path.stem in names)]
    if not traces:
        raise NoTraceInsideError(folder)
    return traces


@contextmanager
def _spooled(path: Path, stream: IO[bytes], home: Path) -> Iterator[Path]:
    with workspace_anywhere(home) as folder:
        if folder is None:
            raise UnreadableFileError(path, "there is nowhere to store it while it is read")
        file = folder / "spooled"
        try:
            with file.open("wb") as target:
                shutil.copyfileobj(stream, target, 1 << 20)
        except OSError as error:
            raise UnreadableFileError(path, error.strerror or str(error)) from None
        yield file


@contextmanager
def _fetched(path: Path) -> Iterator[IO[bytes]]:
    address = re.sub(r":/+", "://", str(path), count=1)
    try:
        import fsspec
    except ImportError:
        raise SourceUnavailableError(address, f"that needs fsspec: {package_command('fsspec')}") from None
    try:
        with fsspec.open(address, "rb") as stream:
            yield stream
    except TracekitError:
        raise
    except Exception as error:  # each kind of store has errors of its own
        raise SourceUnavailableError(address, (str(error) or type(error).__name__).splitlines()[0]) from None
