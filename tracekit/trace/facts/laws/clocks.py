"""Can things have happened when the trace says they did: in the order of a stream, and after they were asked for?"""

from collections.abc import Iterator

import numpy as np

from tracekit.base.intervals import Union
from tracekit.base.units import count, duration
from tracekit.trace.facts.law import Broken, law
from tracekit.trace.model import Trace
from tracekit.trace.steps import host_span

_MIN_EARLY_SHARE = 0.01  # of the activities: fewer that start too early change no figure that matters
_MIN_OVERRUN_SHARE = 0.3  # of the host's recording: the GPU hardly works for so long after it
_MIN_TIMES_USUAL = 20  # as long as the longest of the others


@law("two_clocks", "refusal", touches=("gpu work", "gpu idle", "steps"))
def two_clocks(trace: Trace) -> Iterator[Broken]:
    """Calls and GPU activity are stamped by clocks that have nothing in common."""
    if trace.impossible.two_clocks:
        yield Broken(
            "The host's calls and the GPU's work are stamped by two clocks: how they lie in time is unknown, and so "
            "are launch delays and idle time."
        )


@law("order", "doubt", touches=("gpu work", "gpu idle", "steps"))
def order(trace: Trace) -> Iterator[Broken]:
    """Activities that outlast a whole later one of their stream, which runs them in order."""
    impossible = trace.impossible
    if len(impossible.shortened):
        number = len(impossible.shortened)
        worst = int(impossible.recorded_ns.argmax())
        starts = trace.ts_ns[impossible.shortened]
        yield Broken(
            f"{count(number)} GPU {'activity' if number == 1 else 'activities'} cannot have lasted as long as recorded "
            f"({'' if number == 1 else 'up to '}{duration(int(impossible.recorded_ns[worst]))}), since a later one of "
            f"the same stream ran meanwhile: {'it ends' if number == 1 else 'they end'} where that one starts.",
            number,
            int(impossible.shortened[worst]),
            gpu=Union.of(starts, starts + impossible.shortened_ns),
        )


@law("causality", "doubt", touches=("gpu idle", "steps"))
def causality(trace: Trace) -> Iterator[Broken]:
    """Activities that start before the calls that submitted them."""
    early, gpu = trace.impossible.before_call, trace.links.gpu
    if len(early) and not trace.impossible.two_clocks:
        yield Broken(
            f"{count(len(early))} of {count(gpu)} GPU activities {'starts' if len(early) == 1 else 'start'} before the "
            "launch call: such work is linked to nothing.",
            len(early),
            int(early[0]),
            severity="note" if len(early) <= _MIN_EARLY_SHARE * gpu else None,
        )


@law("overlong", "doubt", touches=("gpu work", "gpu idle", "steps"))
def overlong(trace: Trace) -> Iterator[Broken]:
    """An activity that goes on long after the host's recording, and takes far longer than any other."""
    begun, ended = host_span(trace)
    if begun > ended:
        return
    # A collective waits for other ranks, for as long as they take.
    rows = trace.where(lambda part: part.roles.gpu & part.lasting & ~part.roles.communication)
    is_late = trace.events_at(rows).end_ns > ended + _MIN_OVERRUN_SHARE * (ended - begun)
    late, usual = rows[is_late], trace.dur_ns[rows[~is_late]].max(initial=0)
    odd = late[trace.dur_ns[late] > _MIN_TIMES_USUAL * usual]
    if len(odd) and usual:
        events = trace.events_at(odd)
        steps = trace.steps
        touched = np.flatnonzero((steps.done > events.ts_ns.min()) & (steps.begin < events.end_ns.max()))
        yield Broken(
            f"{count(len(odd))} GPU {'activity lasts for' if len(odd) == 1 else 'activities last for up to'} "
            f"{duration(int(trace.dur_ns[odd].max()))}, long after the host's recording ended and far longer than any "
            "other: that is hardly true.",
            len(odd),
            int(odd[trace.dur_ns[odd].argmax()]),
            gpu=Union.of(events.ts_ns, events.end_ns),
            steps=tuple(touched.tolist()),
        )
