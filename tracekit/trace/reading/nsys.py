"""Reads exports of Nsight Systems (`--type sqlite`): kernels, copies, calls of the runtime and the driver, NVTX ranges
as operators, steps and annotations.

Tables and columns: "SQLite Export Schema Reference" of the Nsight Systems documentation. A table that was not recorded
is not in the file, and columns came and went from version to version, so each is asked for only where it is there.
Operators are in the file where `torch.autograd.profiler.emit_nvtx` or `nsys profile --pytorch=autograd-nvtx` was on.
Times are ns already.
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from tracekit.base.intervals import Ints
from tracekit.errors.reading import EmptyTraceError, NotATraceError
from tracekit.trace.reading.event_details import COMMUNICATIONS, NOTES, table_in_order
from tracekit.trace.reading.tables import STORED, Reading, stored, tracks_table
from tracekit.trace.schema import LABEL
from tracekit.trace.storing.column_file import Piece

if TYPE_CHECKING:
    import sqlite3

_SQLITE = b"SQLite format 3\0"
_REPORTS = (".nsys-rep", ".qdrep")
_LARGEST_NUMBER = 1 << 62  # a number beyond fits no column
_LONGEST_VALUE = 16 << 20  # bytes
_VERSION = re.compile(r"_v\d+(?:_pt[sd][sz])?$")  # cudaLaunchKernel_v7000
_OPERATOR = re.compile(r"([\w:.~ ]+?)(?:, (?:seq|op_id) = -?\d+)+(?:, .*)?", re.DOTALL)  # as emit_nvtx writes it
_SEQUENCE = re.compile(r", seq = (\d{1,18})")
_STEP = re.compile(r"(?:.*[^a-z])?(?:step|iter|iteration|batch)s?(?:[^a-z].*)?", re.IGNORECASE | re.DOTALL)
_NUMBER = re.compile(r"\d{1,18}")
_RECORDED = {"CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS"}  # one of them at least
_OF_NSYS = {"OSRT_API", "META_DATA_EXPORT", "TARGET_INFO_SESSION_START_TIME", "PROCESSES", "COMPOSITE_EVENTS"}
_CUDA = "CUPTI_ACTIVITY_KIND_"
_NO_CUDA = "it is an export of Nsight Systems in which nothing of the GPU was recorded"
_RECORD_CUDA = "Record it with `nsys profile --trace cuda,nvtx,osrt`, and export that with `nsys export --type sqlite`."
_RANGES = (59, 60)  # NvtxPushPopRange, NvtxStartEndRange
# CUpti_ActivityMemcpyKind and CUpti_ActivityMemoryKind as nsys numbers them, in the words of Kineto.
_COPIES = dict(enumerate(("HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP"), start=1))
_MEMORY = {0: "Pageable", 1: "Pinned", 2: "Device", 3: "Array", 4: "Managed", 5: "Device Static", 6: "Managed Static"}


class _Row(NamedTuple):
    ts_ns: int
    end_ns: int
    cat: str
    name: str
    track: tuple[str, str]  # pid, tid
    correlation: int | None = None
    stream: int | None = None
    size: int | None = None
    sequence: int | None = None


def recognises(path: Path, head: bytes) -> bool:
    """Whether a file is such an export, or the report that it is made from."""
    return head.startswith(_SQLITE) or path.suffix in _REPORTS


def read(path: Path, display_path: object = None, *, tables: Path | None = None, **options: Any) -> Reading:
    """Read an export. Raises NotATraceError and EmptyTraceError."""
    display_path = display_path if display_path is not None else path
    if path.suffix in _REPORTS:
        command = f"nsys export --type sqlite {path.name}"
        raise NotATraceError(display_path, f"it is a report of Nsight Systems, which `{command}` makes readable")
    import sqlite3

    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
            connection.text_factory = lambda text: text.decode("utf-8", "replace")
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_VALUE)
            connection.set_authorizer(_only_plain_tables)
            export = _Export(connection)
            has_cuda = any(name.startswith(_CUDA) for name in export.columns)
            if not has_cuda and export.columns.keys() & _OF_NSYS and not export.columns.keys() & _RECORDED:
                raise NotATraceError(display_path, _NO_CUDA, _RECORD_CUDA)
            if not export.columns.keys() & _RECORDED:
                raise NotATraceError(
                    display_path, "it is a database, but no export of Nsight Systems with CUDA or NVTX in it"
                )
            rows = [*export.events()]
            threads, meta = export.threads(), export.meta()
    except (sqlite3.Error, OverflowError) as error:
        raise NotATraceError(display_path, f"its tables cannot be read: {error}") from None
    if not rows:
        raise EmptyTraceError(display_path)
    if not has_cuda:
        raise NotATraceError(display_path, _NO_CUDA, _RECORD_CUDA)
    rows.sort(key=lambda row: (row.ts_ns, -row.end_ns))  # what encloses others comes first
    numbers = {track: number for number, track in enumerate(dict.fromkeys(row.track for row in rows))}
    pieces, dictionaries = _columns(rows, numbers)
    bytes_read = path.stat().st_size
    events, file = stored(lambda: iter([pieces]), dictionaries, len(rows), bytes_read, tables)
    return Reading(
        events=events,
        tracks=tracks_table(numbers, {}, threads),
        communications=table_in_order(COMMUNICATIONS, []),
        notes=table_in_order(NOTES, []),
        meta=meta,
        bytes_read=bytes_read,
        file=file,
        lost=export.lost,
    )


def _columns(rows: list[_Row], numbers: dict[tuple[str, str], int]) -> tuple[list[Piece], list[pa.Array]]:
    """The columns of the events, and the labels behind the numbers in two of them."""
    labels: dict[str, dict[str, int]] = {"cat": {}, "name": {}}

    def integers(values: list[int | None]) -> Piece:
        is_valid = np.array([value is not None for value in values], bool)
        return Piece(np.array([value or 0 for value in values], np.int64), None if is_valid.all() else is_valid)

    def coded(name: str) -> Piece:
        codes = labels[name]
        return Piece(np.array([codes.setdefault(getattr(row, name), len(codes)) for row in rows], np.int32))

    starts: Ints = np.array([row.ts_ns for row in rows], np.int64)
    columns = {
        "ts_ns": Piece(starts),
        "dur_ns": Piece(np.array([row.end_ns for row in rows], np.int64) - starts),
        "cat": coded("cat"),
        "name": coded("name"),
        "track": Piece(np.array([numbers[row.track] for row in rows], np.int32)),
        "correlation": integers([row.correlation for row in rows]),
        "stream": integers([row.stream for row in rows]),
        "bytes": integers([row.size for row in rows]),
        "sequence": integers([row.sequence for row in rows]),
    }
    columns["file_row"] = columns["track"]
    nothing = Piece(np.zeros(len(rows), np.int64), np.zeros(len(rows), bool))
    dictionaries = [pa.array(list(labels[field.name]), pa.string()) for field in STORED if field.type == LABEL]
    return [columns.get(field.name, nothing) for field in STORED], dictionaries


def _only_plain_tables(action: int, first: str | None, second: str | None, database: object, inner: str | None) -> int:
    """Lets a statement read the columns of tables. What a file can say that its tables are, such as a view that never
    ends or a column that is computed, is refused."""
    import sqlite3

    is_plain = action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ) and inner is None
    is_listing = action == sqlite3.SQLITE_PRAGMA and first == "table_info"
    return sqlite3.SQLITE_OK if is_plain or is_listing else sqlite3.SQLITE_DENY


class _Export:
    """The tables of an export; `lost` counts the events that make no sense, once all have been read."""

    def __init__(self, connection: "sqlite3.Connection") -> None:
        self._connection = connection
        self.lost = 0
        names = [str(name) for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        quoted = {name: name.replace('"', '""') for name in names}
        self.columns = {
            name: {str(row[1]) for row in connection.execute(f'PRAGMA table_info("{quoted[name]}")')} for name in names
        }
        self._texts = dict(self.select("StringIds", "id", "value"))

    def select(self, table: str, *columns: str) -> Iterator[tuple[Any, ...]]:
        """These columns of a table, NULL where it lacks one; nothing where there is no such table."""
        if table in self.columns:
            available = self.columns[table]
            listed = ", ".join(f'"{name}"' if name in available else "NULL" for name in columns)
            yield from self._connection.execute(f'SELECT {listed} FROM "{table}"')

    def events(self) -> Iterator[_Row]:
        """All events, in no particular order."""
        yield from self._sane((*self._calls(), *self._activities()))
        yield from _with_steps([*self._sane(self._ranges())])

    def _sane(self, rows: Iterable[_Row]) -> Iterator[_Row]:
        """The rows whose figures are numbers that fit their columns; the others are counted as damaged."""
        for row in rows:
            figures = (row.ts_ns, row.end_ns, row.correlation or 0, row.stream or 0, row.size or 0)
            if all(isinstance(figure, int) and 0 <= figure < _LARGEST_NUMBER for figure in figures):
                yield row if row.end_ns >= row.ts_ns else row._replace(end_ns=row.ts_ns)
            else:
                self.lost += 1

    def _calls(self) -> Iterator[_Row]:
        columns = "start", "end", "globalTid", "correlationId", "nameId"
        for start, end, thread, correlation, name in self.select("CUPTI_ACTIVITY_KIND_RUNTIME", *columns):
            text = _VERSION.sub("", self._text(name))
            category = "cuda_runtime" if text.startswith("cuda") else "cuda_driver"
            yield _Row(start, end, category, text, _thread(thread), self._unique(thread, correlation))

    def _activities(self) -> Iterator[_Row]:
        common = "start", "end", "globalPid", "deviceId", "streamId", "correlationId"

        def row(values: tuple[Any, ...], category: str, name: str, size: int | None = None) -> _Row:
            start, end, process, device, stream, correlation = values
            track = str(device), str(stream)
            return _Row(start, end, category, name, track, self._unique(process, correlation), stream, size)

        for *values, full, short in self.select("CUPTI_ACTIVITY_KIND_KERNEL", *common, "demangledName", "shortName"):
            yield row(tuple(values), "kernel", self._text(full if full is not None else short))
        for *values, graph in self.select("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", *common, "graphId"):
            yield row(tuple(values), "kernel", f"CUDA graph {graph}")
        columns = "bytes", "copyKind", "srcKind", "dstKind"
        for *values, size, kind, source, target in self.select("CUPTI_ACTIVITY_KIND_MEMCPY", *common, *columns):
            ends = f" ({_MEMORY[source]} -> {_MEMORY[target]})" if {source, target} <= _MEMORY.keys() else ""
            yield row(tuple(values), "gpu_memcpy", f"Memcpy {_COPIES.get(kind, 'unknown')}{ends}", size)
        for *values, size, kind in self.select("CUPTI_ACTIVITY_KIND_MEMSET", *common, "bytes", "memKind"):
            yield row(tuple(values), "gpu_memset", f"Memset ({_MEMORY.get(kind, 'Unknown')})", size)

    def _ranges(self) -> Iterator[_Row]:
        """NVTX ranges: operators by the names that torch gives theirs, and annotations."""
        columns = "start", "end", "globalTid", "text", "textId", "eventType"
        for start, end, thread, text, number, kind in self.select("NVTX_EVENTS", *columns):
            if kind not in _RANGES or end is None:  # a mark, or a range that did not end
                continue
            name = text if isinstance(text, str) else self._text(number)
            if operator := _OPERATOR.fullmatch(name):
                sequence_match = _SEQUENCE.search(name)
                sequence = int(sequence_match[1]) if sequence_match is not None else None
                yield _Row(start, end, "cpu_op", operator[1], _thread(thread), sequence=sequence)
            else:
                category = "cpu_op" if name.startswith("aten::") else "user_annotation"
                yield _Row(start, end, category, name, _thread(thread))

    def threads(self) -> dict[tuple[str, str], str]:
        """The names of threads and streams by their tracks."""
        thread_names = {
            _thread(thread): self._text(name) for name, thread in self.select("ThreadNames", "nameId", "globalTid")
        }
        for kind in ("KERNEL", "MEMCPY", "MEMSET"):
            for device, stream in {*self.select(f"CUPTI_ACTIVITY_KIND_{kind}", "deviceId", "streamId")}:
                thread_names[str(device), str(stream)] = f"stream {stream}"
        return thread_names

    def meta(self) -> dict[str, Any]:
        """What Kineto's header says, in its words: when the clock began, and which GPUs there are."""
        gpus = [
            {"id": number, "name": name, "totalGlobalMem": memory, "numSms": multiprocessors}
            for number, name, memory, multiprocessors in self.select(
                "TARGET_INFO_GPU", "id", "name", "totalMemory", "smCount"
            )
            if isinstance(number, int) and isinstance(name, str)
        ]
        begun = next(self.select("TARGET_INFO_SESSION_START_TIME", "utcEpochNs"), (None,))[0]
        return {
            **({"deviceProperties": gpus} if gpus else {}),
            **({"baseTimeNanoseconds": begun} if isinstance(begun, int) else {}),
        }

    def _text(self, number: object) -> str:
        return str(self._texts.get(number, "unknown"))

    @staticmethod
    def _unique(owner: object, correlation: object) -> int | None:
        """A correlation id that no other process has: each counts its own."""
        if not isinstance(correlation, int) or not isinstance(owner, int) or not 0 < correlation < 1 << 32:
            return None
        return (owner >> 24 & 0xFFFFFF) << 32 | correlation


def _thread(global_id: object) -> tuple[str, str]:
    """Process and thread, which nsys stores as one number: 24 bits each, below what says where they ran."""
    number = global_id if isinstance(global_id, int) else 0
    return str(number >> 24 & 0xFFFFFF), str(number & 0xFFFFFF)


def _with_steps(ranges: list[_Row]) -> Iterator[_Row]:
    """The ranges, of which those that mark the steps of a training loop are called `ProfilerStep#N`.

    These are the ranges of one thread which are alike but for a number, are called after steps, iterations or batches,
    and take the most time.
    """

    def kind(row: _Row) -> tuple[object, str]:
        return row.track, _NUMBER.sub("#", row.name)

    alike: dict[tuple[object, str], list[_Row]] = {}
    for row in sorted(ranges, key=lambda row: row.ts_ns):
        if row.cat == "user_annotation" and _STEP.fullmatch(row.name):
            alike.setdefault(kind(row), []).append(row)
    repeated = [rows for rows in alike.values() if len(rows) > 1]
    marks = max(repeated, key=lambda rows: sum(row.end_ns - row.ts_ns for row in rows), default=[])
    numbers = [_NUMBER.findall(row.name) for row in marks]
    if any(len(digits) != 1 for digits in numbers) or len({digits[0] for digits in numbers}) < len(marks):
        numbers = [[str(position)] for position in range(len(marks))]
    names = {id(row): f"ProfilerStep#{number}" for row, (number,) in zip(marks, numbers, strict=True)}
    yield from (row._replace(name=names.get(id(row), row.name)) for row in ranges)
