"""The tables of a trace, a comment for each column.

Times are int64 nanoseconds on the trace's own clock (`ts_ns`), exact to the decimal text of the file.
"""

from typing import Literal

import pyarrow as pa

Role = Literal[
    "",
    "identity",
    "place",
    "kernel",
    "name",
    "figure",
    "plumbing",
    "detail",
    "source",
    "setting",
    "reason",
    "code",
    "bar",
]


def column(name: str, kind: pa.DataType, comment: str, unit: str = "", *, role: Role = "", title: str = "") -> pa.Field:
    """A field whose meaning, unit and role travel with it, into Parquet too.

    The role says how the column is shown to people: an `identity` is a number that identifies a thing; a `place` is
    in source code; a `kernel` or a `name` may be long and is shortened; a `setting` is several words that all
    matter; a `reason` is in the words of somebody else, which are whole if everything is shown; a `figure` is text
    that reads as a number; `code` is a line of source; a `bar` is drawn with letters; `plumbing` ties rows to other
    tables or to a clock and is for programs only; so is a `source`, instead of which people read the `place` beside it;
    a `detail` is shown only if everything is. The title is shown above the column in place of its name.
    """
    optional = {"role": role, "title": title}
    given_metadata = {"comment": comment, "unit": unit, **{key: text for key, text in optional.items() if text}}
    return pa.field(name, kind, metadata=given_metadata)


def metadata(field: pa.Field, key: str) -> str:
    """The comment, unit, role or title that `column` was given; empty if it was not given."""
    return str((field.metadata or {}).get(key.encode(), b"").decode())


LABEL = pa.dictionary(pa.int32(), pa.string())  # text that repeats: names, categories, buckets

EVENTS = pa.schema(
    [
        column("ts_ns", pa.int64(), "start", "ns"),
        column("dur_ns", pa.int64(), "duration; a missing or negative one is 0", "ns"),
        column("cat", LABEL, "category in today's spelling: cpu_op, cuda_runtime, kernel, …"),
        column("name", LABEL, "name as written"),
        column("track", pa.int32(), "row of the tracks table: the thread or the stream it ran on"),
        column("correlation", pa.int64(), "links a runtime call with its GPU activities; null where it links nothing"),
        column("external_id", pa.int64(), "the profiler's id of the operator an event belongs to"),
        column("stream", pa.int64(), "GPU stream, from the args of the event"),
        column("bytes", pa.int64(), "bytes moved by a copy or a memset", "B"),
        column(
            "sequence",
            pa.int64(),
            "autograd sequence number, which links a forward operator with its backward operator",
        ),
        column(
            "fwd_thread",
            pa.int64(),
            "for a backward operator, the profiler's number of the thread that ran its forward operator",
        ),
        column("python_id", pa.int64(), "id of a Python frame"),
        column("python_parent_id", pa.int64(), "id of the frame that called it"),
    ]
)

# As a trace is stored: beside them the row of the file on which each event stands, as written: events of equal `pid`,
# `tid` and `args.context` have equal numbers, of which those of events without a category are complements (~number).
STORED = EVENTS.append(pa.field("file_row", pa.int32()))

# The same columns while a trace is being read: text as numbers, whose meaning each part defines for itself.
CODED = pa.schema([pa.field(f.name, pa.int32() if f.type == LABEL else f.type) for f in EVENTS])

TRACKS = pa.schema(
    [
        column("track", pa.int32(), "row number"),
        column("pid", pa.string(), "process, or device on GPU rows, as text"),
        column("tid", pa.string(), "thread, or stream on GPU rows, as text"),
        column("process", pa.string(), "process name, where the trace names it"),
        column("thread", pa.string(), "thread name, where the trace names it"),
    ]
)

# How older versions of the profiler spelled the categories, in lower case.
ALIASES = {
    "operator": "cpu_op",
    "runtime": "cuda_runtime",
    "memcpy": "gpu_memcpy",
    "memset": "gpu_memset",
    "user": "gpu_user_annotation",
}
# Files of 2019 have no categories; the process shows what an event is.
CATEGORY_BY_PID = {"CPU functions": "cpu_op", "CUDA functions": "kernel"}


def category(cat: object, pid: object) -> str:
    """The category of an event in today's spelling."""
    if cat is None:
        return CATEGORY_BY_PID.get(str(pid), "")
    lowered = str(cat).lower()
    return ALIASES.get(lowered, lowered)
