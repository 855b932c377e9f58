"""One event of the file: the fields that are used."""

from typing import Any

import msgspec

Scalar = int | float | str | None
NOTHING = msgspec.Raw(b"null")  # of a field that the file does not have


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


def value_of(raw: msgspec.Raw) -> Any:
    """The value of a field whose text was kept; None where that is no JSON."""
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
