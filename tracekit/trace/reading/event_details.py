"""One event of the file: the fields that are used, its category, and what the profiler writes about some events besides
their times: what a wait is for, counters, bandwidths, and of collectives the kind, the amount of data and the group.
"""

import json
from collections.abc import Iterable, Iterator
from math import prod
from typing import Any

import msgspec
import pyarrow as pa

from tracekit.trace.reading import exact
from tracekit.trace.schema import column

Scalar = int | float | str | None
NOTHING = msgspec.Raw(b"null")  # of a field that the file does not have
# How older versions of the profiler spelled the categories, in lower case.
_ALIASES = {
    "operator": "cpu_op",
    "runtime": "cuda_runtime",
    "memcpy": "gpu_memcpy",
    "memset": "gpu_memset",
    "user": "gpu_user_annotation",
}
# Files of 2019 have no categories; the process shows what an event is.
_CATEGORY_BY_PID = {"CPU functions": "cpu_op", "CUDA functions": "kernel"}
NOTES = pa.schema(
    [
        column("ts_ns", pa.int64(), "start of the event that records it", "ns"),
        column("pid", pa.string(), "process of the event, or device on GPU rows"),
        column("tid", pa.string(), "thread of the event, or stream on GPU rows"),
        column("name", pa.string(), "name of the event"),
        column("wait_stream", pa.int64(), "stream on which the awaited CUDA event was recorded"),
        column("wait_correlation", pa.int64(), "correlation id of the call that recorded it"),
        column("bandwidth", pa.float64(), "bandwidth of a copy or a memset, 10⁹ bytes a second"),
        column("counters", pa.map_(pa.string(), pa.float64()), "performance counters of a kernel"),
    ]
)
COUNTED = "cuda_profiler_range"  # the category of events that have counters
_INTEGER, _TEXT = pa.int64(), pa.string()
COMMUNICATIONS = pa.schema(
    [
        column("ts_ns", _INTEGER, "start of the event that records it", "ns"),
        column("pid", _TEXT, "process of the event, or device on GPU rows"),
        column("tid", _TEXT, "thread of the event, or stream on GPU rows"),
        column("name", _TEXT, "name of the event"),
        column("collective", _TEXT, "allreduce, _allgather_base, send …; null where only shapes are recorded"),
        column("element_bytes", _INTEGER, "size of one element", "B"),
        column("in_elements", _INTEGER, "number of input elements on this rank"),
        column("out_elements", _INTEGER, "number of output elements on this rank"),
        column("group", _TEXT, "name of the process group"),
        column("description", _TEXT, "what the program calls the process group"),
        column("group_size", _INTEGER, "number of ranks in the group"),
        column("members", pa.list_(_INTEGER), "the ranks in the group"),
        column("seq", _INTEGER, "number of the collective within its group, if the profiler counts them"),
        column("source", _INTEGER, "rank that data is received from"),
        column("destination", _INTEGER, "rank that data is sent to"),
        column("input_bytes", _INTEGER, "size of the input, computed from its shapes", "B"),
    ]
)
_BACKENDS = ("nccl:", "gloo:", "mpi:", "ucc:", "xccl:", "hccl:")
BYTES_OF_TYPE = {  # of an operator's input
    **dict.fromkeys(("double", "long", "long int", "int64_t", "c10::complex<float>"), 8),
    **dict.fromkeys(("float", "int"), 4),
    **dict.fromkeys(("c10::BFloat16", "c10::Half", "short", "short int"), 2),
    **dict.fromkeys(("bool", "unsigned char", "signed char", "c10::Float8_e4m3fn", "c10::Float8_e5m2"), 1),
}
_SIZES = {  # of a collective, in lower case
    **{name.lower(): size for name, size in BYTES_OF_TYPE.items()},
    "complexfloat": 8,
    "bfloat16": 2,
    "half": 2,
    **dict.fromkeys(("byte", "char", "float8_e4m3fn", "float8_e5m2"), 1),
}


class Args(msgspec.Struct, gc=False):
    """The arguments that become columns, and the names that metadata events carry."""

    correlation: Scalar = None
    external_id: Scalar = msgspec.field(default=None, name="External id")
    external_id_2021: Scalar = msgspec.field(default=None, name="external id")
    stream: Scalar = None
    context: Scalar = None  # with process and thread, it says which row of the file an event stands on
    original_stream: Scalar = None  # of work of a CUDA graph that an exporter moved to a lane (PyTorch 2.15)
    bytes: Scalar = None
    bandwidth: Scalar = msgspec.field(default=None, name="memory bandwidth (GB/s)")
    sequence: Scalar = msgspec.field(default=None, name="Sequence number")
    fwd_thread: Scalar = msgspec.field(default=None, name="Fwd thread id")
    python_id: Scalar = msgspec.field(default=None, name="Python id")
    python_parent_id: Scalar = msgspec.field(default=None, name="Python parent id")
    name: Scalar = None
    collective: msgspec.Raw = msgspec.field(default=NOTHING, name="Collective name")
    wait_stream: msgspec.Raw = msgspec.field(default=NOTHING, name="wait_on_stream")
    wait_correlation: msgspec.Raw = msgspec.field(default=NOTHING, name="wait_on_cuda_event_record_corr_id")


class Event(msgspec.Struct, gc=False):
    """One trace event. The start stays text, because a float would not hold it exactly."""

    ph: Scalar = None
    cat: Scalar = None
    name: Scalar = None
    pid: Scalar = None
    tid: Scalar = None
    ts: msgspec.Raw = NOTHING
    dur: Scalar = None
    args: Args | None = None


class Length(msgspec.Struct, gc=False):
    """The text of a duration, for durations that a float would not hold exactly."""

    ph: Scalar = None
    ts: msgspec.Raw = NOTHING
    dur: msgspec.Raw = NOTHING


class _CountedEvent(msgspec.Struct, gc=False):
    ph: object = None
    cat: object = None
    name: object = None
    pid: object = None
    tid: object = None
    ts: msgspec.Raw = NOTHING
    args: object = None


class _CommunicationArgs(Args, gc=False):
    dtype: msgspec.Raw = NOTHING
    in_elements: msgspec.Raw = msgspec.field(default=NOTHING, name="In msg nelems")
    out_elements: msgspec.Raw = msgspec.field(default=NOTHING, name="Out msg nelems")
    group: msgspec.Raw = msgspec.field(default=NOTHING, name="Process Group Name")
    group_of_2023: msgspec.Raw = msgspec.field(default=NOTHING, name="Process Group ID")
    description: msgspec.Raw = msgspec.field(default=NOTHING, name="Process Group Description")
    group_size: msgspec.Raw = msgspec.field(default=NOTHING, name="Group size")
    members: msgspec.Raw = msgspec.field(default=NOTHING, name="Process Group Ranks")
    seq: msgspec.Raw = msgspec.field(default=NOTHING, name="Seq")
    source: msgspec.Raw = msgspec.field(default=NOTHING, name="Src Rank")
    destination: msgspec.Raw = msgspec.field(default=NOTHING, name="Dst Rank")
    dims: msgspec.Raw = msgspec.field(default=NOTHING, name="Input Dims")
    types: msgspec.Raw = msgspec.field(default=NOTHING, name="Input type")


class CommunicationEvent(Event, gc=False):
    """An event with the arguments of communication."""

    args: _CommunicationArgs | None = None


_COUNTED_EVENTS = msgspec.json.Decoder(list[_CountedEvent])


def category(cat: object, pid: object) -> str:
    """The category of an event in today's spelling."""
    if cat is None:
        return _CATEGORY_BY_PID.get(str(pid), "")
    lowered = str(cat).lower()
    return _ALIASES.get(lowered, lowered)


def value_of(raw: msgspec.Raw) -> Any:
    """The value of a field whose text was kept; None where that is no JSON."""
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


def table_in_order(schema: pa.Schema, rows: list[list[Any]]) -> pa.Table:
    """The rows in order of time, which is their first column."""
    ordered = sorted(rows, key=lambda row: row[0])
    columns = zip(*ordered, strict=True) if ordered else [()] * len(schema)
    arrays = [pa.array([*column], field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.table(arrays, schema=schema)


def waits(events: Iterable[Event]) -> Iterator[list[Any]]:
    """A row of NOTES for each event with a valid time that says what it waits for."""
    for event in events:
        args = event.args
        if args is not None and not (args.wait_stream is NOTHING and args.wait_correlation is NOTHING):
            awaited = [_integer(value_of(raw)) for raw in (args.wait_stream, args.wait_correlation)]
            if awaited != [None, None]:
                yield from _row(event, *awaited, None, None)


def counters(text: bytes) -> Iterator[list[Any]]:
    """A row of NOTES for each event of a list that has performance counters; none for a list that is damaged."""
    try:
        events = _COUNTED_EVENTS.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return
    for event in events:
        if event.ph == "X" and event.cat == COUNTED and isinstance(event.args, dict):
            numbers = [(str(key), float(value)) for key, value in event.args.items() if type(value) in (int, float)]
            yield from _row(event, None, None, None, numbers)


def bandwidths(events: Iterable[Event]) -> Iterator[list[Any]]:
    """A row of NOTES for each copy or memset with a valid time."""
    for event in events:
        speed = event.args.bandwidth if event.args is not None else None
        if isinstance(speed, int | float):
            yield from _row(event, None, None, float(speed), None)


def _integer(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 62 else None


def is_of_backend(name: Scalar) -> bool:
    """Whether it names a span of a communication backend, whose shapes give the size of the input."""
    return isinstance(name, str) and name.startswith(_BACKENDS)


def communication_rows(events: Iterable[Event]) -> Iterator[list[Any]]:
    """A row of COMMUNICATIONS for each event with a valid time that describes communication."""
    for event in events:
        args = event.args
        if isinstance(args, _CommunicationArgs) and (args.collective is not NOTHING or is_of_backend(event.name)):
            group = args.group if args.group is not NOTHING else args.group_of_2023
            yield from _row(
                event,
                _text(value_of(args.collective)),
                _SIZES.get(str(value_of(args.dtype)).lower()),
                *(_whole_number(value_of(argument)) for argument in (args.in_elements, args.out_elements)),
                _text(value_of(group)),
                _text(value_of(args.description)),
                _whole_number(value_of(args.group_size)),
                _members(value_of(args.members)),
                *(_whole_number(value_of(argument)) for argument in (args.seq, args.source, args.destination)),
                _input_bytes(value_of(args.dims), value_of(args.types)),
            )


def _row(event: Event | _CountedEvent, *columns: Any) -> Iterator[list[Any]]:
    """The row of an event, if it has a valid time."""
    start = exact.from_text(bytes(event.ts))
    if start is not None:
        yield [start, str(event.pid), str(event.tid), str(event.name), *columns]


def _text(value: object) -> str | None:
    return str(value)[:200] if isinstance(value, str | int) and not isinstance(value, bool) else None


def _whole_number(value: object) -> int | None:
    if isinstance(value, str) and value.lstrip("-").isdecimal() and len(value) < 19:
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 62 else None


def _members(value: object) -> list[int] | None:
    """`[0, 1, 2]`, which is written as text; null if it is shortened (`[0, 1, ...]`), as long lists are."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    if not isinstance(value, list) or not value:
        return None
    ranks = [_whole_number(member) for member in value]
    valid_ranks = [rank for rank in ranks if rank is not None]
    return sorted(valid_ranks) if len(valid_ranks) == len(ranks) else None


def _input_bytes(dims: object, types: object) -> int | None:
    """The size of the first input, which is the data that a backend's span communicates."""
    if not (isinstance(dims, list) and dims and isinstance(types, list) and types):
        return None
    size, shape = _SIZES.get(str(types[0]).lower()), dims[0]
    if (
        size is None
        or not isinstance(shape, list)
        or not all(isinstance(length, int) and length >= 0 for length in shape)
    ):
        return None
    total = size * prod(shape)
    return total if 0 < total < 1 << 62 else None
