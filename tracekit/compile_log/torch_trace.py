"""Reads a log that TORCH_TRACE wrote as if tracekit had listened. tlparse reads the same log; torch is not needed.

A record is a line in the format of glog, with its metadata as JSON; a payload follows in lines that begin with a tab.
The format has neither year nor time zone, so times are taken from the compiler's own spans, which are in unix time.
"""

import io
import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any

import msgspec

from tracekit.compile_log.ledger import ledger
from tracekit.compile_log.log import CompileLog, from_json
from tracekit.errors import TracekitError
from tracekit.errors.reading import BadCompileLogError, UnreadableFileError
from tracekit.run import Ledger
from tracekit.trace.reading.source import Source
from tracekit.vocabulary.lines_file import Graph

_RECORD = re.compile(r"(?:\[rank\d+\]:)?[VIWEC]\d{4} [\d:.]+ (?P<process>\d+) [^\]]*\] ?(?P<metadata>\{.*)")
_LOOKED_AT, _LONGEST = 100, 1 << 16  # lines of a file that may be a log, and characters of one
_LONGEST_RECORD = 64 << 20  # characters; a longer one is left out
_ALWAYS = 256 << 20  # bytes to which a packed log may unpack
_LATEST_NS = 1 << 62  # in unix time
_FILES = "dedicated_log_torch_trace_*.log"


def read(path: Path, processes: Collection[int] = ()) -> tuple[Ledger, list[Graph]]:
    """What was compiled, and the lines of the kernels if the compiler stored them. Raises BadCompileLogError, and what
    opening a file raises.

    The path is the folder that TORCH_TRACE named, or one file in it. Of several files, one per rank, the first that one
    of these processes wrote is read, or else the first. Where no file has that name, those count that hold a record.
    """
    try:
        files = [path]
        if path.is_dir():
            by_name = sorted(path.glob(_FILES))
            files = by_name or sorted(file for file in path.iterdir() if file.is_file() and _process(file) is not None)
        if not files:
            raise BadCompileLogError(path, f"neither {_FILES} nor another such log is in it")
        wanted_files = (file for file in files if len(files) > 1 and _process(file) in processes)
        with _lines(next(wanted_files, files[0]), _LONGEST_RECORD) as lines:
            log, records = _listened(lines)
    except OSError as error:
        raise BadCompileLogError(path, error.strerror or "it cannot be read") from None
    if not records:
        raise BadCompileLogError(path, "it holds no record of torch's structured log")
    return _storable(ledger(log, [])), [graph for graph in log.provenance.graphs if _is_storable(graph)]


def _storable(read: Ledger) -> Ledger:
    """The ledger without entries that no run file may hold."""
    kinds = {name: [entry for entry in getattr(read, name) if _is_storable(entry)] for name in Ledger.__struct_fields__}
    return Ledger(**kinds)


def _is_storable(entry: object) -> bool:
    try:
        msgspec.convert(msgspec.to_builtins(entry), type(entry))
        return True
    except (ValueError, OverflowError, TypeError):  # TypeError: of a type that no JSON has
        return False


@contextmanager
def _lines(path: Path, longest: int) -> Iterator[Iterator[str]]:
    """The lines of a file, packed or not; of longer ones, pieces. Raises what opening a file raises, and
    UnreadableFileError at the end of what can be read of a damaged archive."""
    with Source(path, _ALWAYS) as source:
        text = io.TextIOWrapper(io.BufferedReader(_Raw(source)), encoding="utf-8", errors="replace")

        def lines() -> Iterator[str]:
            yield from iter(lambda: text.readline(longest), "")
            if source.damage is not None:
                raise UnreadableFileError(path, source.damage)

        yield lines()


class _Raw(io.RawIOBase):
    """What a source unpacks, for Python's own readers."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._source.readinto(memoryview(buffer))


def _process(path: Path) -> int | None:
    """The process of the first record; None if none of the first lines is one."""
    try:
        with _lines(path, _LONGEST) as lines:
            heads = map(_head, islice(lines, _LOOKED_AT))
            return next((head[0] for head in heads if head is not None), None)
    except (OSError, TracekitError):
        return None


def _listened(lines: Iterable[str]) -> tuple[CompileLog, int]:
    """The log, and the number of records that were understood; others are left out."""
    log, t_ns, records = CompileLog(), 0, 0
    for process, metadata, payload in _records(lines):
        try:
            if "chromium_event" in metadata and payload is not None:
                span_ns = round(from_json(payload)["ts"] * 1000)
                if not 0 <= span_ns < _LATEST_NS:
                    continue
                t_ns = span_ns
            log.take(metadata, payload, t_ns, process)
            records += 1
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
            continue
    return log, records


def _records(lines: Iterable[str]) -> Iterator[tuple[int, dict[str, Any], str | None]]:
    """Process, metadata and payload of each record."""
    head: tuple[int, dict[str, Any]] | None = None
    payload: list[str] = []
    length = 0  # characters of the payload
    for line in chain(lines, [""]):  # where the file ends, the last record does
        if line.startswith("\t"):
            length += len(line)
            if head is not None and length < _LONGEST_RECORD:
                payload.append(line[1:])
            continue
        if head is not None and length < _LONGEST_RECORD:  # of a longer line, this is the first piece
            yield *head, "".join(payload).rstrip("\n") if payload else None
        head, payload, length = _head(line), [], 0


def _head(line: str) -> tuple[int, dict[str, Any]] | None:
    shape = _RECORD.match(line)
    if shape is None:
        return None
    try:
        metadata = from_json(shape["metadata"])
        return int(shape["process"]), metadata
    except (ValueError, RecursionError):
        return None
