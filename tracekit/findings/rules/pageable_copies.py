"""Do copies to the GPU from pageable memory hold up the host?"""

import re
from collections.abc import Iterator

import numpy as np

from tracekit.findings import Finding, evidence, rule
from tracekit.findings.culprits import operators_around, where_of_event
from tracekit.intervals import Ints, Union
from tracekit.profile import Profile
from tracekit.trace import Trace
from tracekit.trace.columns import values
from tracekit.units import duration, size, times

_PAGEABLE = re.compile(r"Memcpy HtoD \(Pageable -> .*", re.DOTALL)
# What copies from pinned memory achieve, bytes per ns, by compute capability: PCI Express 5.0, 4.0, 3.0 with 16 lanes.
_BUS = ((9, 50.0), (8, 25.0), (0, 12.0))
_USUAL_BUS = 25.0
_FEW = 3  # calls: of fewer, none is unusual
_UNUSUAL = 5.0  # times the median
_MUCH = 0.3  # of the time of all calls
_LINK = "https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html"


@rule("pageable_copies")
def pageable_copies(profile: Profile) -> Iterator[Finding]:
    """`h2d_pageable_copy`: the time in which the GPU only copies, or waits for such a copy to be submitted."""
    trace, pieces = profile.trace, profile.attribution.pieces
    if profile.means["wall"] is None or not trace.census.any(lambda roles: roles.gpu & roles.named(_PAGEABLE)):
        return
    copies, calls = _pageable(trace)
    rows = np.concatenate((copies, calls))
    events = trace.events_at(rows)
    claim = Union.of(events.ts_ns, events.end_ns)
    claim = claim.minus(_pinned(trace, copies))
    claim = claim.minus(pieces.union(pieces.of("gpu_compute", "gpu_comm", "gpu_gap")))
    counted = profile.in_counted(trace.steps.of(trace.ts_ns[calls]))
    if not counted.any():
        return
    longest = calls[counted][np.argmax(trace.dur_ns[calls[counted]])]
    operators = operators_around(profile, int(longest))
    culprit = where_of_event(profile, int(longest), operators[0] if operators else None)
    steps = profile.counted_steps
    lasts = trace.dur_ns[calls[counted]]
    blocked = lasts.sum() / steps
    moved = values(trace.events["bytes"])[copies[counted]].sum() / steps
    yield Finding(
        "h2d_pageable_copy",
        f"Host-to-device copies from pageable memory{culprit.at}",
        why=f"Data is copied {times(round(float(counted.sum()) / steps, 1))} a step ({size(moved)}); the calls hold up "
        f"the host for {duration(blocked)} a step{_outlier(lasts, values(trace.events['bytes'])[copies[counted]])}.",
        do="Pin the host's memory (DataLoader(pin_memory=True), or tensor.pin_memory()) and copy with "
        "non_blocking=True, so that copies run beside the kernels; or create the data on the GPU.",
        where=culprit,
        evidence=evidence(profile, calls[counted]),
        link=_LINK,
        claim=claim,
    )


def _outlier(lasts: Ints, moved: Ints) -> str:
    """The longest call, where it makes much of the mean although copies of its size usually take far less."""
    longest = int(np.argmax(lasts))
    alike = lasts[moved == moved[longest]]
    usual = float(np.median(alike))
    if len(alike) < _FEW or lasts[longest] < max(_UNUSUAL * usual, _MUCH * lasts.sum()):
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
