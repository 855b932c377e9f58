"""The communication of one rank, in the order in which it begins: kernels, or on a CPU the spans of its backend."""

from typing import Any

import numpy as np
import pyarrow as pa

from tracekit.engine.buckets import CODES, KEYS
from tracekit.intervals import Ints
from tracekit.profile import Profile
from tracekit.profile.collective_waits import BACKEND_SPAN
from tracekit.ranks.spent import Spent
from tracekit.trace.collective_arguments import collective_arguments
from tracekit.trace.roles import USER
from tracekit.trace.schema import column

Members = dict[str, tuple[int, ...]]  # the ranks of process groups, by their names
_WHOLE = pa.int64()
_BY_BUCKET = pa.list_(_WHOLE, len(KEYS))
CALLS = pa.schema(
    [
        column("step", _WHOLE, "the N of ProfilerStep#N", role="identity"),
        column("kind", pa.string(), "all_reduce, all_to_all …"),
        column("group", pa.string(), "process group; null where the trace does not name it"),
        column(
            "seq",
            _WHOLE,
            "its number in the trace, or else its position among those of its kind and group in the step",
            role="identity",
        ),
        column("nth", _WHOLE, "its number among the calls that agree in all of the above, from 0"),
        column("ranks", _WHOLE, "number of ranks that take part; null where it is unknown"),
        column(
            "bytes", _WHOLE, "bytes communicated, as nccl-tests counts them; null where the trace does not say", "B"
        ),
        column("start_ns", _WHOLE, "when this rank arrives, unix time of its own clock", "ns"),
        column("end_ns", _WHOLE, "when this rank is done, unix time of its own clock", "ns"),
        column("exposed_ns", _WHOLE, "the part of it that no computation overlaps on this rank", "ns"),
        column("spent_at_start_ns", _BY_BUCKET, "wall time of each bucket from the first step until then", "ns"),
        column("spent_at_end_ns", _BY_BUCKET, "wall time of each bucket from the first step until then", "ns"),
    ]
)


def calls_of(profile: Profile, rank: int, world_size: int | None) -> tuple[pa.Table, Members]:
    """The communication of the answered steps of one rank, as `CALLS` describes it, and the members of its groups."""
    trace = profile.trace
    rows = _rows(profile)
    events = trace.events_at(rows)
    order = np.lexsort((events.end_ns, events.ts_ns))
    rows, start, end = rows[order], events.ts_ns[order], events.end_ns[order]
    begins = profile.attribution.answered_view.starts_ns
    index = np.maximum(_begun(begins, trace.device, start, end), 0)
    step = np.array(trace.steps.number, np.int64)[index]
    entries = collective_arguments(trace, rows, rank, world_size)
    groups = [each.group for each in entries]
    numbers = _nth([(at, each.kind, each.group) for at, each in zip(step.tolist(), entries, strict=True)])
    spent = Spent(profile.attribution.pieces)
    at_start, at_end = spent.until(start), spent.until(end)
    columns = {
        "step": step,
        "kind": [each.kind for each in entries],
        "group": [each.label if each is not None else None for each in groups],
        "seq": [nth if each.seq is None else each.seq for each, nth in zip(entries, numbers, strict=True)],
        "nth": _nth([(at, each.kind, each.group, each.seq) for at, each in zip(step.tolist(), entries, strict=True)]),
        "ranks": [each.ranks for each in entries],
        "bytes": [each.size_bytes for each in entries],
        "start_ns": start + trace.base_ns,
        "end_ns": end + trace.base_ns,
        "exposed_ns": _exposed(trace.device, end - start, at_end - at_start),
        "spent_at_start_ns": pa.FixedSizeListArray.from_arrays(at_start.ravel(), type=_BY_BUCKET),
        "spent_at_end_ns": pa.FixedSizeListArray.from_arrays(at_end.ravel(), type=_BY_BUCKET),
    }
    members = {each.label: each.members for each in groups if each is not None and each.members is not None}
    return pa.table(columns, schema=CALLS), members


def _rows(profile: Profile) -> Ints:
    """Communication that runs while an answered step lasts."""
    trace, view = profile.trace, profile.attribution.answered_view
    low = view.starts_ns[view.known]
    high = low + view.step_ns[view.known]
    on_cpu = trace.labels.fits(BACKEND_SPAN)
    parts = [np.zeros(0, np.int64)]
    for part in trace.parts() if len(low) else ():
        roles = part.roles
        wanted = roles.communication if trace.device == "gpu" else (roles.kind == USER) & on_cpu[part.name_codes]
        rows = part.rows(wanted & part.lasting)
        asked = trace.events_at(rows)
        step = _begun(low, trace.device, asked.ts_ns, asked.end_ns)
        parts.append(rows[(step >= 0) & (asked.ts_ns < high[np.maximum(step, 0)])])
    return np.concatenate(parts)


def _begun(begins: Ints, device: str, start: Ints, end: Ints) -> Ints:
    """The step that each call belongs to, −1 for none: on a GPU, which lags behind the host, the last step that has
    begun before the call ends.

    On a CPU, it is the step in which the call starts, because its thread may end a little later than the step that
    waits for it.
    """
    if device == "gpu":
        index: Ints = np.searchsorted(begins, end, side="left") - 1
        return index
    index = np.searchsorted(begins, start, side="right") - 1
    return index


def _exposed(device: str, length: Ints, by_bucket: Ints) -> Ints:
    """On a GPU, the time in which only communication runs; on a CPU, the time in which no operator computes."""
    hidden = length - by_bucket[:, CODES["gpu_comm"]] if device == "gpu" else by_bucket[:, CODES["cpu_compute"]]
    return length - np.clip(hidden, 0, length)


def _nth(keys: list[Any]) -> list[int]:
    """For each key, its number among equal keys, from 0."""
    counts: dict[Any, int] = {}
    numbers = []
    for key in keys:
        numbers.append(counts.get(key, 0))
        counts[key] = numbers[-1] + 1
    return numbers
