"""Which time of a step is demonstrably that of graph breaks?

Where a graph breaks, its function goes on in Python and enters compiled code again: the region of what follows is
nested in the function's. A function that cannot be resumed runs in Python as a whole, and the compiled regions that it
calls follow one another.
"""

import re
from dataclasses import dataclass

import numpy as np

from tracekit.intervals import Bools, Ints, Union
from tracekit.profile import Profile
from tracekit.trace.enclosing import outermost

_REGION = re.compile(r"Torch-Compiled Region: .*", re.DOTALL)
_WRAPPER = re.compile(r"Torch-Compiled Region: .*|Pregraph bytecode|AOTDispatcher Runtime Wrapper Prologue", re.DOTALL)
_LEFT = ("python", "guards")  # what runs outside of graphs; the wrappers of graphs have buckets of their own
_WRAPS = ("dispatch", "cpu_compute")


@dataclass(frozen=True)
class BreakTime:
    """The time that breaks may cost, the pieces of the steps that it is part of, and what it is, in words."""

    claim: Union
    pieces: Bools
    said: str


def break_time(profile: Profile) -> BreakTime | None:
    """The time between the graphs of functions that break; None where the run knows of no break."""
    if profile.variant is None or not profile.variant.ledger.breaks:
        return None
    trace, pieces = profile.trace, profile.attribution.pieces
    left = pieces.of(*_LEFT)
    main = trace.threads.main
    regions = trace.where(lambda part: part.roles.named(_REGION) & part.lasting & (part.track == main))
    if not len(regions):
        said = "all Python of a step, as no compiled region was recorded: at most that much is the breaks'"
        return BreakTime(pieces.union(left), left, said)
    outer = outermost(trace, regions)
    starts, ends = trace.ts_ns[outer], trace.ts_ns[outer] + trace.dur_ns[outer]
    if len(outer) == len(regions):
        steps = trace.steps.of(starts)
        same = np.flatnonzero(steps[:-1] == steps[1:])
        said = "all Python between compiled regions: at most that much is the breaks'"
        return _inside(profile, left, ends[same], starts[same + 1], said)
    wraps = trace.labels.fits(_WRAPPER)
    wrapping = (pieces.event >= 0) & wraps[trace.name_codes[np.maximum(pieces.event, 0)]]
    left |= pieces.of(*_WRAPS) & wrapping
    resumed = np.unique(np.searchsorted(starts, trace.ts_ns[np.setdiff1d(regions, outer)], side="right") - 1)
    # The function was entered before its first graph: that is no break's.
    graphs = np.append(pieces.start[~left], np.iinfo(np.int64).max)
    first = np.minimum(graphs[np.searchsorted(graphs, starts[resumed])], ends[resumed])
    return _inside(profile, left, first, ends[resumed], "what runs between the graphs of the functions that break")


def _inside(profile: Profile, chosen: Bools, starts: Ints, ends: Ints, said: str) -> BreakTime:
    """The part of these pieces between those moments."""
    pieces = profile.attribution.pieces
    time, spans = pieces.union(chosen), Union.of(starts, ends)
    inside: Bools = chosen & (spans.within(pieces.start, pieces.end) > 0)
    return BreakTime(time.minus(time.minus(spans)), inside, said)
