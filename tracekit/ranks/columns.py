"""What comparing ranks needs of one rank: columns of totals and of communication, a few kilobytes per step.

They are made where the trace is – here, in another process, on another machine – and can be pickled. Comparing ranks
requires nothing else.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from tracekit.engine.buckets import BUCKETS, KEYS
from tracekit.engine.cached import known_attribution
from tracekit.profile import Capture, Mean, Profile
from tracekit.profile.names import stem
from tracekit.profile.ranks import rank_of
from tracekit.ranks.cached import known_calls
from tracekit.ranks.calls import Members
from tracekit.trace import Trace
from tracekit.trace.schema import column

STEPS = pa.schema(
    [
        column("step", pa.int64(), "the N of ProfilerStep#N", role="identity"),
        column("steady", pa.bool_(), "whether nothing is compiled in the step"),
        column("step_ns", pa.int64(), "wall time of the step", "ns"),
        *(column(f"{key}_ns", pa.int64(), BUCKETS[key].meaning, "ns") for key in KEYS),
    ]
)


@dataclass(frozen=True)
class RankColumns:
    """The columns of one rank. Times are in ns."""

    rank: int
    world_size: int | None  # how many ranks the job has, if the trace says it
    trace: str  # path of the file
    means: dict[str, Mean | None]  # for each view, what a counted step takes
    steps: pa.Table  # the answered ones, see STEPS
    calls: pa.Table  # see ranks.calls.CALLS
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
    attribution = known_attribution(trace.inferring_steps() if infer_steps else trace.as_annotated())
    profile = Profile(stem(path), (Capture(path, attribution),))
    if rank is None:
        rank = rank_of(profile)[0] or 0
    return rank_columns(profile, rank)


def rank_columns(profile: Profile, rank: int) -> RankColumns:
    """The columns of a profile of one rank."""
    world_size = rank_of(profile)[1]
    calls, groups = known_calls(profile, rank, world_size)
    return RankColumns(
        rank=rank,
        world_size=world_size,
        trace=str(profile.trace.path),
        means=profile.means,
        steps=_steps(profile),
        calls=calls,
        groups=groups,
        cut_short=profile.trace.cut_short,
    )


def _steps(profile: Profile) -> pa.Table:
    view = profile.attribution.answered_view
    known = np.flatnonzero(view.known)
    totals = {f"{key}_ns": view.totals[known, index] for index, key in enumerate(view.keys)}
    none = np.zeros(len(known), np.int64)
    columns = {
        "step": np.array(profile.trace.steps.number, np.int64)[known],
        "steady": ~profile.attribution.compiles[known],
        "step_ns": view.step_ns[known],
        **{f"{key}_ns": totals.get(f"{key}_ns", none) for key in KEYS},
    }
    return pa.table(columns, schema=STEPS)
