"""The slow and obvious reader with which the fast one is compared: `json` and `Decimal`, one event at a time."""

import gzip
import json
from decimal import ROUND_HALF_EVEN, Decimal
from pathlib import Path
from typing import Any

from tracekit.trace import Trace
from tracekit.trace.reading.event_details import category

ARGS = {
    "correlation": ("correlation",),
    "external_id": ("External id", "external id"),
    "stream": ("stream",),
    "bytes": ("bytes",),
    "sequence": ("Sequence number",),
    "fwd_thread": ("Fwd thread id",),
    "python_id": ("Python id",),
    "python_parent_id": ("Python parent id",),
}
COLUMNS = ("ts_ns", "dur_ns", "cat", "name", "pid", "tid", *ARGS)


def plain(path: Path) -> list[tuple[Any, ...]]:
    """Every duration event as a tuple of COLUMNS, in order of start, or of the file if starts are equal."""
    content = path.read_bytes()
    if content[:2] == b"\x1f\x8b":
        content = gzip.decompress(content)
    document = json.loads(content.decode("utf-8", "replace"), strict=False, parse_float=Decimal)
    events = document if isinstance(document, list) else document["traceEvents"]
    rows = [row(event) for event in events if event.get("ph") == "X" and number(event.get("ts")) is not None]
    return sorted(rows, key=lambda event: event[0])


def row(event: dict[str, Any]) -> tuple[Any, ...]:
    args = event.get("args") or {}
    values = {name: next((args[key] for key in keys if args.get(key) is not None), None) for name, keys in ARGS.items()}
    if values["correlation"] in (0, -1):
        values["correlation"] = None
    values = {name: whole(value) for name, value in values.items()}
    return (
        nanoseconds(number(event["ts"]) or 0),
        max(nanoseconds(number(event.get("dur")) or 0), 0),
        category(event.get("cat"), event.get("pid")),
        event.get("name", ""),
        str(event.get("pid")),
        str(event.get("tid")),
        *values.values(),
    )


def whole(value: Any) -> int | None:
    try:
        return int(value) if value is not None else None
    except ValueError:  # ROCm writes streams such as 0x0
        return None


def number(value: Any) -> Decimal | int | None:
    """A number, which some writers put in quotes; None for anything else."""
    if isinstance(value, str):
        try:
            value = json.loads(value, parse_float=Decimal) if value[:1] in "-0123456789" == value[:1] else None
        except ValueError:
            return None
    return value if isinstance(value, int | Decimal) and not isinstance(value, bool) else None


def nanoseconds(us: Decimal | int) -> int:
    return int((Decimal(us) * 1000).quantize(Decimal(1), ROUND_HALF_EVEN))


def fast(trace: Trace) -> list[tuple[Any, ...]]:
    """The same for a trace that the fast reader has read."""
    events, tracks = trace.events, trace.tracks
    columns = {name: events[name].to_pylist() for name in events.column_names}
    pids, tids = tracks["pid"].to_pylist(), tracks["tid"].to_pylist()
    columns["pid"] = [pids[track] for track in columns["track"]]
    columns["tid"] = [tids[track] for track in columns["track"]]
    return list(zip(*(columns[name] for name in COLUMNS), strict=True))
