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
    """Calls and GPU activity are stamped by clocks that have nothing in common.

    Holds: Calls and work of the GPU are stamped by one clock, or by two that the profiler has aligned.
    Breaks: More than half of the linked activities start before the first call that carries their correlation, or more
        than 60 s after its end.
    Do: Update driver and profiler; the host's side can still be read.
    """
    if trace.impossible.two_clocks:
        yield Broken(
            "The host's calls and the GPU's work are stamped by two clocks: how they lie in time is unknown, and so "
            "are launch delays and idle time."
        )


@law("order", "doubt", touches=("gpu work", "gpu idle", "steps"))
def order(trace: Trace) -> Iterator[Broken]:
    """Activities that outlast a whole later one of their stream, which runs them in order.

    Holds: A stream runs one activity after the other, in the order in which they were launched.
    Breaks: One activity is enough: another launch's activity on its stream starts later and ends no later than it does.
    Then: The activity ends where the later one starts; what it did beyond that is unknown.
    Do: Update the profiler, or record again.
    """
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
    """Activities that start before the calls that submitted them.

    Holds: Nothing runs before it was launched.
    Breaks: More than 1 % of the GPU's activities start before their launch call does; fewer are a note.
    Then: Such activities are linked to nothing.
    Do: Update driver and profiler, or record again.
    """
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
    """An activity that goes on long after the host's recording, and takes far longer than any other.

    Holds: Work of the GPU ends soon after the host's recording does.
    Breaks: An activity goes on for more than 30 % of the host's recording after its end, and lasts more than 20 times
        as long as any other; collectives, which wait for other ranks, are not looked at.
    Then: Steps during it are left out.
    Do: Record again: the end of that activity is probably wrong.
    """
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
