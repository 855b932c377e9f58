"""Which part of a trace without steps repeats?

The boundaries of iterations are inferred: they are where an optimizer's step ends, where the next batch is requested,
or else where a sequence of operators begins again.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracekit.intervals import Bools, Ints, Rows, runs
from tracekit.trace.enclosing import outermost
from tracekit.trace.roles import DATALOAD, OPERATOR, OPTIMIZER_STEP
from tracekit.units import count

if TYPE_CHECKING:
    from tracekit.trace.model import Trace
    from tracekit.trace.rows import Events

_LEAST = 2  # iterations that an optimizer or a loader marks
_LEAST_UNMARKED = 3  # repetitions of a sequence of operators
_WHOLE = 0.5  # of the usual number of operators: with less, the recording began or ended in the middle of an iteration
_ALIKE = 0.9  # of the operators must be the same one period later
_TRIED = 64  # periods, at most


@dataclass(frozen=True)
class Iterations:
    """The start and end of each iteration, ns, and how they were recognised."""

    starts: Ints
    ends: Ints
    by: str


def find_iterations(trace: "Trace") -> Iterations | None:
    """The repeated iterations of the main thread; None if nothing repeats."""
    main = trace.threads.main
    if main is None:
        return None
    operators = _outermost_work(trace, main)
    if not len(operators):
        return None
    return (
        _by_optimizer(trace, main, operators) or _by_loader(trace, main, operators) or _by_operators(trace, operators)
    )


def _outermost_work(trace: "Trace", main: int) -> Ints:
    """The main thread's operators, and calls that submit work, that no other operator encloses."""

    def works(part: "Events") -> Bools:
        operators = (part.roles.kind == OPERATOR) & ~part.roles.annotation
        wanted: Bools = (operators | part.roles.launch) & part.lasting & (part.track == main)
        return wanted

    return outermost(trace, trace.where(works))


def _by_optimizer(trace: "Trace", main: int, operators: Ints) -> Iterations | None:
    marks = trace.where(lambda part: part.roles.named(OPTIMIZER_STEP) & part.roles.annotation & (part.track == main))
    if len(marks) < _LEAST:
        return None
    each = _period(trace.name_codes[marks]) or 1  # several optimizers may step in an iteration
    ends = trace.events_at(marks).end_ns[each - 1 :: each]
    bounds = np.concatenate(([trace.ts_ns[operators[0]]], ends))
    return _whole_ones(trace, operators, bounds, "the optimizer's steps")


def _by_loader(trace: "Trace", main: int, operators: Ints) -> Iterations | None:
    marks = trace.where(lambda part: part.roles.named(DATALOAD) & part.roles.annotation & (part.track == main))
    if len(marks) < _LEAST:
        return None
    starts, end = trace.ts_ns[marks], trace.events_at(operators[-1:]).end_ns
    bounds = np.append(starts, end[end > starts[-1]])  # a loader is called once more than it has batches
    return _whole_ones(trace, operators, bounds, "the batches asked for")


def _whole_ones(trace: "Trace", operators: Ints, bounds: Ints, by: str) -> Iterations | None:
    """The iterations, without incomplete ones at either end."""
    inside = np.histogram(trace.ts_ns[operators], bounds)[0] if (np.diff(bounds) > 0).all() else np.zeros(0)
    if not len(inside):
        return None
    whole = inside >= _WHOLE * np.median(inside)
    first, last = int(whole.argmax()), len(whole) - int(whole[::-1].argmax())
    if last - first < _LEAST:
        return None
    return Iterations(bounds[first:last], bounds[first + 1 : last + 1], by)


def _by_operators(trace: "Trace", operators: Ints) -> Iterations | None:
    names = trace.name_codes[operators]
    period = _period(names)
    if period is None:
        return None
    same = _same(names, period)
    bounds = runs(same.astype(np.int8))
    longest = max(range(len(bounds) - 1), key=lambda k: (bounds[k + 1] - bounds[k]) * int(same[bounds[k]]))
    first, length = int(bounds[longest]), int(bounds[longest + 1] - bounds[longest]) + period
    number = length // period
    if number < _LEAST_UNMARKED or length < _ALIKE * len(names):
        return None
    begin = operators[first : first + number * period : period]
    last = operators[first + number * period - 1]
    edges = np.append(trace.ts_ns[begin], trace.events_at(np.array([last])).end_ns)
    sequence = "an operator" if period == 1 else f"a sequence of {count(period)} operators"
    return Iterations(edges[:-1], edges[1:], f"{sequence} that occurs {number} times")


def _period(names: Rows) -> int | None:
    """The number of entries after which a sequence repeats; None if it does not."""
    which = np.unique(names, return_inverse=True)[1]
    order = np.argsort(which, kind="stable")
    apart = np.diff(order)[np.diff(which[order]) == 0]  # of one name from one entry to the next
    periods, frequent = np.unique(apart, return_counts=True)
    tried = periods[np.argsort(-frequent, kind="stable")][:_TRIED]
    alike = {int(period): float(_same(names, int(period)).mean()) for period in tried if 2 * period <= len(names)}
    best = max(alike.values(), default=0.0)
    return min(period for period, part in alike.items() if part >= best - 0.01) if best >= _ALIKE else None


def _same(names: Rows, period: int) -> Bools:
    same: Bools = names[:-period] == names[period:]
    return same
