"""Is the file whole, and was all of it read?"""

from collections.abc import Iterator

import numpy as np

from tracekit.base.intervals import NO_TIME, Union
from tracekit.base.units import many
from tracekit.trace.facts.law import Broken, law
from tracekit.trace.model import Trace

_MAX_LOST_SHARE = 0.01  # of the events: with more unread ones, figures lack something that matters


@law("cut_short", "doubt", touches=("gpu work", "gpu idle", "host time", "steps"))
def cut_short(trace: Trace) -> Iterator[Broken]:
    """The file ends before its events do."""
    if trace.cut_short:
        start = trace.lost_from_ns
        end = int(trace.end_ns.max(initial=0)) + 1
        span = Union.of(np.array([start]), np.array([end])) if start is not None else NO_TIME
        yield Broken(
            f"The file is truncated ({trace.cut_short}); the events before that point are used.",
            gpu=span if trace.device == "gpu" else NO_TIME,
            host=span,
        )


@law("damaged", "doubt", touches=("gpu work", "gpu idle", "host time", "steps"))
def damaged(trace: Trace) -> Iterator[Broken]:
    """The archive is damaged, although the list of events in it ends properly."""
    if trace.damage and not trace.cut_short:
        yield Broken(f"{trace.damage[:1].upper()}{trace.damage[1:]}; the events before that point are used.")


@law("merged_file", "note")
def merged_file(trace: Trace) -> Iterator[Broken]:
    """The file holds other processes, too."""
    if trace.process is not None:
        yield Broken(
            f"One of several processes in the file ({trace.process}); events without a process, such as the profiler's "
            "own overhead, are left out."
        )


@law("lost_header", "note")
def lost_header(trace: Trace) -> Iterator[Broken]:
    """The keys before the events are unknown."""
    if trace.header_lost:
        yield Broken("The header before the events is too long, and was not read.")


@law("lost_events", "doubt", touches=("gpu work", "gpu idle", "host time"))
def lost_events(trace: Trace) -> Iterator[Broken]:
    """Some events could not be read; a few do no harm, nor does the one at which a file was cut."""
    if trace.lost:
        be = "is" if trace.lost == 1 else "are"
        are_few = trace.lost <= _MAX_LOST_SHARE * len(trace.ts_ns) or trace.cut_short is not None
        yield Broken(
            f"{many(trace.lost, 'event')} could not be read, and {be} excluded from all figures.",
            trace.lost,
            severity="note" if are_few else None,
        )


@law("mended_events", "note")
def mended_events(trace: Trace) -> Iterator[Broken]:
    """Some events were read although their JSON is broken."""
    if trace.mended:
        yield Broken(
            f"{many(trace.mended, 'event')} {'was' if trace.mended == 1 else 'were'} repaired: an unescaped quote in a "
            "name, a value of the wrong type, or a negative duration (which counts as 0).",
            trace.mended,
        )


@law("whole_microseconds", "note")
def whole_microseconds(trace: Trace) -> Iterator[Broken]:
    """Times have no decimals."""
    if any((part.ts_ns % 1000 != 0).any() for part in trace.parts()):
        return
    if any((part.roles.host & ~part.lasting).any() for part in trace.parts()):
        yield Broken("Times are whole microseconds: anything shorter appears as zero.")
