"""Do collectives begin late, because other kernels keep the GPU busy when their stream could go on?"""

from collections.abc import Iterator

import numpy as np

from tracekit.findings import Finding, Where, evidence, rule
from tracekit.findings.counted import Steps
from tracekit.findings.kernels import kernels, time_of
from tracekit.intervals import Ints, Union
from tracekit.profile import Profile
from tracekit.units import duration, many

_USUAL_NS = 50_000  # for the event that a stream waits for, and the launch itself
_BUSY = 0.5  # of the time: else it is not other kernels that the collective waits for
_LINK = "https://docs.pytorch.org/docs/stable/torch_nccl_environment_variables.html"


@rule("late_collectives")
def late_collectives(profile: Profile) -> Iterator[Finding]:
    """`late_collectives`, which is not one of `VERDICTS`: the exposed time that beginning when ready would save."""
    trace, pieces = profile.trace, profile.attribution.pieces
    rows = kernels(profile, lambda events: events.roles.communication)
    late = _late_ns(profile, rows)
    rows, late = rows[late > _USUAL_NS], late[late > _USUAL_NS]
    if not len(rows):
        return
    start = trace.ts_ns[rows]
    computing = time_of(profile, kernels(profile, lambda events: ~events.roles.communication))
    crowded = computing.within(start - late, start) >= _BUSY * late
    rows, late = rows[crowded], late[crowded]
    if not len(rows):
        return
    end = trace.ts_ns[rows] + trace.dur_ns[rows]
    sooner = Union.of(end - np.minimum(late, trace.dur_ns[rows]), end)
    claim = sooner.minus(sooner.minus(pieces.union(pieces.of("gpu_comm"))))
    number = many(round(len(rows) / len(Steps.of(profile).low), 1), "collective")
    yield Finding(
        "late_collectives",
        "Collectives begin late on a busy GPU",
        why=f"{number} a step could begin earlier, by {duration(float(late.max()))} at most: all that was submitted "
        "before is done, but kernels of other streams keep the GPU busy.",
        do="Let collectives go first: TORCH_NCCL_HIGH_PRIORITY=1, or "
        "ProcessGroupNCCL.Options(is_high_priority_stream=True) for init_process_group.",
        where=Where(kernel=trace.names[trace.name_codes[rows[late.argmax()]]]),
        evidence=evidence(profile, rows),
        link=_LINK,
        claim=claim,
        confidence="inferred",
    )


def _late_ns(profile: Profile, rows: Ints) -> Ints:
    """How long after it could have begun each of these kernels begins.

    A kernel can wait for nothing but its launch and what was submitted before it. Of CUDA graphs nothing is known,
    since all their kernels are submitted at once.
    """
    trace = profile.trace
    every = kernels(profile, lambda events: events.roles.gpu)
    launches, of_rows = trace.links.launch(every), trace.links.launch(rows)
    every, launches = every[launches >= 0], launches[launches >= 0]
    submitted = trace.ts_ns[launches]
    order = np.argsort(submitted, kind="stable")
    done = np.maximum.accumulate((trace.ts_ns[every] + trace.dur_ns[every])[order])
    before = np.searchsorted(submitted[order], trace.ts_ns[of_rows]) - 1
    earlier = np.where(before >= 0, done[np.maximum(before, 0)] if len(done) else 0, 0)
    ready = np.maximum(earlier, trace.ts_ns[of_rows] + trace.dur_ns[of_rows])
    known = (of_rows >= 0) & ~trace.events_at(np.maximum(of_rows, 0)).roles.graph_launch
    return np.where(known, np.maximum(trace.ts_ns[rows] - ready, 0), 0).astype(np.int64)
