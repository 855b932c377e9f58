"""Do copies to the GPU from pageable memory hold up the host? Does the GPU idle because device memory is allocated and
freed in every step?
"""

import re
from collections.abc import Iterator

import numpy as np

from tracekit.base.intervals import Bools, Ints, Rows, Union, distinct
from tracekit.base.units import duration, size, times
from tracekit.findings import Finding, evidence, rule
from tracekit.findings.culprits import by_name, operators_around, where_of_event
from tracekit.findings.holes import LEAST_NS, is_hole
from tracekit.findings.kernels import time_of
from tracekit.profile import Profile
from tracekit.trace import Trace
from tracekit.trace.roles import bare
from tracekit.trace.schema import values

_PAGEABLE = re.compile(r"Memcpy HtoD \(Pageable -> .*", re.DOTALL)
# What copies from pinned memory achieve, bytes per ns, by compute capability: PCI Express 5.0, 4.0, 3.0 with 16 lanes.
_BUS = ((9, 50.0), (8, 25.0), (0, 12.0))
_USUAL_BUS = 25.0
_TOO_FEW_CALLS = 3  # calls: of fewer, none is unusual
_UNUSUAL = 5.0  # times the median
_MIN_SHARE_OF_CALLS = 0.3  # of the time of all calls
_PINNING_LINK = "https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html"
_MIN_SHARE_OF_STEPS = 0.5  # of the steps; calls in fewer steps only fill the allocator's cache
_ALLOCATOR_LINK = (
    "https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf"
)


@rule("pageable_copies", timed=True)
def pageable_copies(profile: Profile) -> Iterator[Finding]:
    """`h2d_pageable_copy`: the time in which the GPU only copies, or waits for such a copy to be submitted."""
    trace, pieces = profile.trace, profile.attribution.pieces
    if not trace.census.any(lambda roles: roles.gpu & roles.named(_PAGEABLE)):
        return
    copies, calls = _pageable(trace)
    is_counted = profile.begins_in_counted(calls)
    if not is_counted.any():
        return
    counted_calls = calls[is_counted]
    lasts, moved = trace.dur_ns[counted_calls], values(trace.events["bytes"])[copies[is_counted]]
    longest = int(counted_calls[np.argmax(lasts)])
    operators = operators_around(profile, longest)
    culprit = where_of_event(profile, longest, operators[0] if operators else None)
    steps = profile.counted_steps
    working = pieces.union(pieces.of("gpu_compute", "gpu_comm", "gpu_gap"))
    yield Finding(
        "h2d_pageable_copy",
        f"Host-to-device copies from pageable memory{culprit.at}",
        why=f"Data is copied {times(round(len(counted_calls) / steps, 1))} a step ({size(moved.sum() / steps)}); the "
        f"calls hold up the host for {duration(lasts.sum() / steps)} a step{_outlier(lasts, moved)}.",
        do="Pin the host's memory (DataLoader(pin_memory=True), or tensor.pin_memory()) and copy with "
        "non_blocking=True, so that copies run beside the kernels; or create the data on the GPU.",
        where=culprit,
        evidence=evidence(profile, counted_calls),
        link=_PINNING_LINK,
        claim=time_of(profile, np.concatenate((copies, calls))).minus(_pinned(trace, copies)).minus(working),
    )


def _outlier(lasts: Ints, moved: Ints) -> str:
    """The longest call, where it makes much of the mean although copies of its size usually take far less."""
    longest = int(np.argmax(lasts))
    alike = lasts[moved == moved[longest]]
    usual = float(np.median(alike))
    if len(alike) < _TOO_FEW_CALLS or lasts[longest] < max(_UNUSUAL * usual, _MIN_SHARE_OF_CALLS * lasts.sum()):
        return ""
    usually = f"where a copy of that size usually takes {duration(usual)}"
    return f" on average; the longest takes {duration(lasts[longest])}, {usually}"


def _pinned(trace: Trace, copies: Ints) -> Union:
    """The time that the copies take from pinned memory, too: as fast as the bus is."""
    newest = max((int(gpu.get("computeMajor") or 0) for gpu in trace.gpus), default=0)
    rate = next((rate for major, rate in _BUS if newest >= major), _USUAL_BUS) if newest else _USUAL_BUS
    events = trace.events_at(copies)
    needed = (values(trace.events["bytes"])[copies] / rate).astype(np.int64)
    return Union.of(np.maximum(events.ts_ns, events.end_ns - needed), events.end_ns)


def pageable_calls(trace: Trace) -> Ints:
    """The calls that copy from pageable memory to the GPU."""
    return _pageable(trace)[1]


def _pageable(trace: Trace) -> tuple[Ints, Ints]:
    """The copies from pageable memory, and their calls."""
    parts = [np.zeros((2, 0), np.int64)]
    for activities, launches in trace.links.some():
        is_pageable = trace.events_at(activities).roles.named(_PAGEABLE)
        parts.append(np.stack((activities[is_pageable], launches[is_pageable])).astype(np.int64))
    copies, calls = np.concatenate(parts, axis=1)
    return copies, calls


@rule("allocator")
def allocator(profile: Profile) -> Iterator[Finding]:
    """`allocator`: calls that allocate or free device memory in most steps, where a cache should serve it."""
    pieces = profile.attribution.pieces
    recurring = _recurring(profile)
    steps = profile.counted_steps
    culprits = by_name(profile, recurring)
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
        link=_ALLOCATOR_LINK,
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
    return time_of(profile, rows[np.logical_or.reduce([np.zeros(len(rows), bool), *recurring])])


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
    return len(distinct(steps)) >= max(2, _MIN_SHARE_OF_STEPS * profile.counted_steps)
