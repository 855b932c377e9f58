"""Does the GPU idle because device memory is allocated and freed in every step?"""

from collections.abc import Iterator

import numpy as np

from tracekit.findings import Finding, evidence, rule
from tracekit.findings.culprits import by_name, where_of_event
from tracekit.findings.holes import LEAST_NS, is_hole
from tracekit.intervals import Bools, Ints, Rows, Union, distinct
from tracekit.profile import Profile
from tracekit.trace.roles import bare
from tracekit.units import duration, times

_OFTEN = 0.5  # of the steps; calls in fewer steps only fill the allocator's cache
_LINK = "https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf"


@rule("allocator")
def allocator(profile: Profile) -> Iterator[Finding]:
    """`allocator`: calls that allocate or free device memory in most steps, where a cache should serve it."""
    pieces = profile.attribution.pieces
    recurring = _recurring(profile)
    steps = profile.counted_steps
    culprits = [culprit for culprit in by_name(profile, recurring) if len(culprit.rows)]
    if not culprits:
        return
    calls = sum(len(culprit.rows) for culprit in culprits) / steps
    location = where_of_event(profile, int(culprits[0].rows[0]))
    yield Finding(
        "allocator",
        f"Device memory is allocated inside steps: {bare(culprits[0].name)}{location.at}",
        why=f"It is allocated or freed {times(round(calls, 1))} a step, and the GPU idles for "
        f"{duration(sum(culprit.step_ns for culprit in culprits))} a step meanwhile.",
        do="Let PyTorch's allocator reuse memory: no torch.cuda.empty_cache() in the loop, and batches of one size. "
        "Where sizes vary, set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; where memory is full, lower the peak.",
        where=location,
        evidence=evidence(profile, culprits[0].rows),
        link=_LINK,
        claim=pieces.union(recurring),
        host=_in_calls(profile),
    )


def _in_calls(profile: Profile) -> Union:
    """When the host is in such calls, also where the GPU is busy or a sync is to blame for its idle time."""
    trace = profile.trace
    rows = trace.where(lambda part: part.roles.alloc & part.process & part.lasting)
    step, long = trace.steps.of(trace.ts_ns[rows]), trace.dur_ns[rows] >= LEAST_NS
    counted = profile.in_counted(step)
    recurring = [kind for kind in (long, ~long) if _recurs(profile, step[kind & counted])]
    events = trace.events_at(rows[np.logical_or.reduce([np.zeros(len(rows), bool), *recurring])])
    return Union.of(events.ts_ns, events.end_ns)


def recurring_calls(profile: Profile) -> Ints:
    """The calls that this rule is about, however long they are."""
    rows = profile.attribution.pieces.event[_recurring(profile)].astype(np.int64)
    return distinct(rows[rows >= 0])


def _recurring(profile: Profile) -> Bools:
    """The pieces of counted steps in which memory is allocated or freed; long ones count only if most steps have one,
    as do the others."""
    pieces = profile.attribution.pieces
    allocating = pieces.of("alloc") & profile.counted[pieces.step]
    long = is_hole(pieces)
    recurring = np.zeros(len(long), bool)
    for kind in (allocating & long, allocating & ~long):
        if _recurs(profile, pieces.step[kind]):
            recurring |= kind
    return recurring


def _recurs(profile: Profile, steps: Ints | Rows) -> bool:
    """Whether that happens in most steps, and in more than one."""
    return len(distinct(steps)) >= max(2, _OFTEN * profile.counted_steps)
