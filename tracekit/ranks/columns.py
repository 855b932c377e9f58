"""What comparing ranks needs of one rank: columns of totals, and its communication in the order in which it begins;
a few kilobytes, kept in the cache.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec import Struct

from tracekit.base.intervals import NO_INTS, Ints, distinct
from tracekit.engine.attribution import Pieces
from tracekit.engine.buckets import BUCKETS, CODES, KEYS
from tracekit.engine.cached import known_attribution
from tracekit.profile import Capture, Mean, Profile
from tracekit.profile.cached import BACKEND_SPAN
from tracekit.profile.names import rank_of, stem
from tracekit.trace import Trace
from tracekit.trace.collectives import collective_arguments
from tracekit.trace.roles import USER
from tracekit.trace.schema import column
from tracekit.trace.storing.cache import recall_table, remember_table, result_name

STEPS = pa.schema(
    [
        column("step", pa.int64(), "the N of ProfilerStep#N", role="identity"),
        column("steady", pa.bool_(), "whether nothing is compiled in the step"),
        column("step_ns", pa.int64(), "wall time of the step", "ns"),
        *(column(f"{key}_ns", pa.int64(), BUCKETS[key].meaning, "ns") for key in KEYS),
    ]
)

Members = dict[str, tuple[int, ...]]  # the ranks of process groups, by their names
_INTEGER = pa.int64()
_BY_BUCKET = pa.list_(_INTEGER, len(KEYS))
CALLS = pa.schema(
    [
        column("step", _INTEGER, "the N of ProfilerStep#N", role="identity"),
        column("kind", pa.string(), "all_reduce, all_to_all …"),
        column("group", pa.string(), "process group; null where the trace does not name it"),
        column(
            "seq",
            _INTEGER,
            "its number in the trace, or else its position among those of its kind and group in the step",
            role="identity",
        ),
        column("nth", _INTEGER, "its number among the calls that agree in all of the above, from 0"),
        column("ranks", _INTEGER, "number of ranks that take part; null where it is unknown"),
        column(
            "bytes", _INTEGER, "bytes communicated, as nccl-tests counts them; null where the trace does not say", "B"
        ),
        column("start_ns", _INTEGER, "when this rank arrives, unix time of its own clock", "ns"),
        column("end_ns", _INTEGER, "when this rank is done, unix time of its own clock", "ns"),
        column("exposed_ns", _INTEGER, "the part of it that no computation overlaps on this rank", "ns"),
        column("spent_at_start_ns", _BY_BUCKET, "wall time of each bucket from the first step until then", "ns"),
        column("spent_at_end_ns", _BY_BUCKET, "wall time of each bucket from the first step until then", "ns"),
    ]
)


class RankColumns(Struct, frozen=True):
    """The columns of one rank. Times are in ns."""

    rank: int
    world_size: int | None  # how many ranks the job has, if the trace says it
    trace: str  # path of the file
    means: dict[str, Mean | None]  # for each view, what a counted step takes
    steps: pa.Table  # the answered ones, see STEPS
    calls: pa.Table  # see CALLS
    groups: Members  # the members of process groups, if the trace names them
    cut_short: str | None = None  # why the file ends before its events do
    sizes_inferred: bool = False  # whether sizes come from another recording of the same steps


def read_rank(
    path: Path, rank: int | None = None, *, infer_steps: bool = True, workers: int | None = None
) -> RankColumns:
    """Read a trace file; the rank is what the trace or its name says, unless one is given. Raises TracekitError.

    At most `workers` processes read it; by default, a few if the file is long.
    """
    trace = Trace.load(path, workers=workers)
    attribution = known_attribution(trace.as_told(infer_steps))
    profile = Profile(stem(path), (Capture(path, attribution),))
    if rank is None:
        rank = rank_of(profile)[0] or 0
    return rank_columns(profile, rank)


def rank_columns(profile: Profile, rank: int) -> RankColumns:
    """The columns of a profile of one rank."""
    world_size, view = rank_of(profile)[1], profile.attribution.answered_view
    calls, groups = known_calls(profile, rank, world_size)
    known_steps = np.flatnonzero(view.known)
    totals = {key: view.totals[known_steps, index] for index, key in enumerate(view.keys)}
    none = np.zeros(len(known_steps), np.int64)
    steps = {
        "step": np.array(profile.trace.steps.number, np.int64)[known_steps],
        "steady": ~profile.attribution.compiles[known_steps],
        "step_ns": view.step_ns[known_steps],
        **{f"{key}_ns": totals.get(key, none) for key in KEYS},
    }
    return RankColumns(
        rank=rank,
        world_size=world_size,
        trace=str(profile.trace.path),
        means=profile.means,
        steps=pa.table(steps, schema=STEPS),
        calls=calls,
        groups=groups,
        cut_short=profile.trace.cut_short,
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
    groups = [entry.group for entry in entries]
    keys = [(number, entry.kind, entry.group) for number, entry in zip(step.tolist(), entries, strict=True)]
    at_start, at_end = (spent_until(profile.attribution.pieces, moments) for moments in (start, end))
    # On a GPU, it is exposed while only communication runs; on a CPU, while no operator computes.
    by_bucket, length = at_end - at_start, end - start
    hidden = length - by_bucket[:, CODES["gpu_comm"]] if trace.device == "gpu" else by_bucket[:, CODES["cpu_compute"]]
    columns = {
        "step": step,
        "kind": [entry.kind for entry in entries],
        "group": [group.label if group is not None else None for group in groups],
        "seq": [nth if entry.seq is None else entry.seq for entry, nth in zip(entries, _nth(keys), strict=True)],
        "nth": _nth([(*key, entry.seq) for key, entry in zip(keys, entries, strict=True)]),
        "ranks": [entry.ranks for entry in entries],
        "bytes": [entry.size_bytes for entry in entries],
        "start_ns": start + trace.base_ns,
        "end_ns": end + trace.base_ns,
        "exposed_ns": length - np.clip(hidden, 0, length),
        "spent_at_start_ns": pa.FixedSizeListArray.from_arrays(at_start.ravel(), type=_BY_BUCKET),
        "spent_at_end_ns": pa.FixedSizeListArray.from_arrays(at_end.ravel(), type=_BY_BUCKET),
    }
    members = {group.label: group.members for group in groups if group is not None and group.members is not None}
    return pa.table(columns, schema=CALLS), members


def _rows(profile: Profile) -> Ints:
    """Communication that runs while an answered step lasts."""
    trace, view = profile.trace, profile.attribution.answered_view
    low = view.starts_ns[view.known]
    high = low + view.step_ns[view.known]
    on_cpu = trace.labels.fits(BACKEND_SPAN)
    parts = [NO_INTS]
    for part in trace.parts() if len(low) else ():
        roles = part.roles
        is_wanted = roles.communication if trace.device == "gpu" else (roles.kind == USER) & on_cpu[part.name_codes]
        rows = part.rows(is_wanted & part.lasting)
        events = trace.events_at(rows)
        step = _begun(low, trace.device, events.ts_ns, events.end_ns)
        parts.append(rows[(step >= 0) & (events.ts_ns < high[np.maximum(step, 0)])])
    return np.concatenate(parts)


def _begun(begins: Ints, device: str, start: Ints, end: Ints) -> Ints:
    """The step that each call belongs to, −1 for none: on a GPU, which lags behind the host, the last step that has
    begun before the call ends.

    On a CPU, it is the step in which the call starts, because its thread may end a little later than the step that
    waits for it.
    """
    begun = np.searchsorted(begins, end) if device == "gpu" else np.searchsorted(begins, start, side="right")
    index: Ints = begun - 1
    return index


def _nth(keys: list[Any]) -> list[int]:
    """For each key, its number among equal keys, from 0."""
    counts: dict[Any, int] = {}
    numbers = []
    for key in keys:
        numbers.append(counts.get(key, 0))
        counts[key] = numbers[-1] + 1
    return numbers


def known_calls(profile: Profile, rank: int, world_size: int | None) -> tuple[pa.Table, Members]:
    """The result of `calls_of`; if it is cached, no event is read."""
    entry = profile.trace.entry
    if entry is None:
        return calls_of(profile, rank, world_size)
    name = result_name("calls", __name__, causes=(rank, world_size))
    stored = recall_table(entry, name)
    if stored is not None:
        calls, groups = stored
        return calls, {label: tuple(ranks) for label, ranks in groups.items()}
    calls_made, members = calls_of(profile, rank, world_size)
    remember_table(entry, name, calls_made, members)
    return calls_made, members


def spent_until(pieces: Pieces, moments: Ints) -> Ints:
    """The running totals of a trace's answered steps at moments of its own clock: a row per moment, a column per bucket
    in the order of the buckets' codes; ns since the first step began."""
    totals = np.zeros((len(moments), len(KEYS)), np.int64)
    for code in distinct(pieces.bucket).tolist():
        in_bucket = pieces.bucket == code
        start, end = pieces.start[in_bucket], pieces.end[in_bucket]
        before = np.concatenate(([0], np.cumsum(end - start)))
        begun = np.searchsorted(start, moments, side="right")
        last = np.maximum(begun - 1, 0)
        totals[:, code] = before[begun] - np.where(begun > 0, np.maximum(end[last] - moments, 0), 0)
    return totals
