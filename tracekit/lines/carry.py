"""Who owns each moment of a steady step? Taken from a detailed step that does the same work.

The operators and annotations of both are matched; where a matched one starts or ends, both are at the same point of the
work: these moments are anchors. Several detailed steps may do the same: what lies between two anchors is read from the
one in which that took most nearly as long. Between two of them, time passes as in the detailed step, less what
recording its calls cost: each recorded call and return is taken to cost the same, so much that the rest is as long as
in the steady step.
"""

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tracekit.base.intervals import NO_INTS, Bools, Ints, Rows, StepFunction, count_up_to, distinct, occurring
from tracekit.lines.shortest_edit import matched
from tracekit.lines.spans import Spans, on_thread
from tracekit.trace import Trace
from tracekit.trace.roles import OPERATOR, PYTHON, STEP

Floats = NDArray[np.float64]
_STEPS = 12  # of Newton's method
_LEAST_SHARE = 0.02  # of the time passed that always remains, whatever recording a call cost


class Carried(Struct, frozen=True):
    """The main thread of a steady trace: the owner of each moment, where that is estimated, and what was matched."""

    owners: StepFunction
    divided: StepFunction  # 1 where several owners share a stretch between two anchors
    detailed: Ints  # for each event the row of the detailed one it was matched with; −1 for none
    tokens: int  # operators and annotations of the steps
    matched: int


class _Step(Struct, frozen=True):
    """The work of a step: its operators and annotations, and its bounds."""

    start: int
    end: int
    spans: Spans
    tokens: Ints


class _Pair(Struct, frozen=True):
    """A steady step and the detailed one it is read from: the same points of the work, in order."""

    rows: tuple[Ints, Ints]
    steady: Ints
    detailed: Ints


def carried(steady: Trace, detailed: Trace, owners: StepFunction) -> Carried:
    """Read each step of one trace from a step of the other, given the owners of its main thread."""
    names: dict[tuple[str, int], int] = {}
    detailed_steps = _steps(detailed, names, detailed.threads.main)
    steady_steps = _steps(steady, names, steady.threads.main)
    candidates = _candidates(steady_steps, detailed_steps)
    calls = on_thread(detailed, detailed.threads.main, detailed.roles.kind == PYTHON)
    moments = np.sort(np.concatenate((detailed.ts_ns[calls], detailed.end_ns[calls])))
    # Each detailed step is cut once, however many steady steps are read from it.
    anchors = {pair.detailed.tobytes(): pair.detailed for pairs in candidates for pair in pairs}
    cut_steps = {key: CutStep.of(moments, anchor) for key, anchor in anchors.items()}
    pieces = []
    rows = np.full(len(steady.ts_ns), -1, np.int64)
    for pairs in candidates:
        apart_ns = np.array([np.abs(np.diff(pair.steady) - np.diff(pair.detailed)) for pair in pairs])
        nearest = np.where(np.diff(pairs[0].steady) > 0, apart_ns.argmin(axis=0), -1)
        for number, pair in enumerate(pairs):
            clock = Clock.of(cut_steps[pair.detailed.tobytes()], pair.steady)
            pieces.append(_read(pair, owners, clock, nearest == number))
        steady_rows, detailed_rows = pairs[int(apart_ns.sum(axis=1).argmin())].rows
        rows[steady_rows] = detailed_rows
    # The stretches of all steps, one step after the other; of several at one moment, the last.
    nothing = NO_INTS
    edges, values, shared = (np.concatenate(column) for column in zip(*pieces, (nothing,) * 3, strict=True))
    order = np.argsort(edges, kind="stable")
    order = order[np.append(np.diff(edges[order]) > 0, True)[: len(order)]]
    edges, values, shared = edges[order], values[order][:-1], shared[order][:-1]
    return Carried(
        StepFunction(edges, values, 0),
        StepFunction(edges, shared, 0),
        rows,
        sum(len(step.tokens) for step in steady_steps),
        int((rows >= 0).sum()),
    )


def of_other_threads(steady: Trace, detailed: Trace) -> Ints:
    """For each event of a helper thread, the row of the detailed event that does the same in a step; −1 for none."""
    rows = np.full(len(steady.ts_ns), -1, np.int64)
    for track, detailed_track in zip(steady.threads.helpers, detailed.threads.helpers, strict=False):
        names: dict[tuple[str, int], int] = {}
        detailed_steps = _steps(detailed, names, detailed_track)
        for pairs in _candidates(_steps(steady, names, track), detailed_steps):
            rows[pairs[0].rows[0]] = pairs[0].rows[1]
    return rows


def _steps(trace: Trace, names: dict[tuple[str, int], int], track: int | None) -> list[_Step]:
    """The steps of a thread. Tokens are numbers for (name, depth), the same in both traces."""
    roles, steps = trace.roles, trace.steps
    mask = ((roles.kind == OPERATOR) | roles.annotation) & ~roles.named(STEP)
    spans = Spans.of(trace, on_thread(trace, track, mask))
    deepest = int(spans.depth.max(initial=0)) + 1
    distinct_tokens, index = occurring(trace.name_codes[spans.rows] * np.int64(deepest) + spans.depth)
    keys = ((trace.names[token // deepest], token % deepest) for token in distinct_tokens.tolist())
    numbers = np.array([names.setdefault(key, len(names)) for key in keys], np.int64)
    tokens = numbers[index] if len(numbers) else NO_INTS
    of_steps = []
    for start, end, done in zip(steps.issued.tolist(), steps.returned.tolist(), steps.until.tolist(), strict=True):
        part = slice(*np.searchsorted(spans.starts, (start, max(done, end))).tolist())
        of_step = Spans(spans.rows[part], spans.starts[part], spans.ends[part])
        of_steps.append(_Step(start, end, of_step, tokens[part]))
    return of_steps


def _candidates(steady: list[_Step], detailed: list[_Step]) -> list[list[_Pair]]:
    """For each step all equal ones, else the one with the most tokens matched."""
    if not detailed:
        return []
    equal: dict[bytes, list[_Step]] = {}
    for step in detailed:
        equal.setdefault(step.tokens.tobytes(), []).append(step)
    best: dict[bytes, tuple[_Step, Ints, Ints]] = {}
    candidates = []
    for step in steady:
        key = step.tokens.tobytes()
        if key in equal:
            all_tokens = np.arange(len(step.tokens))
            candidates.append([_pair(step, equal_step, all_tokens, all_tokens) for equal_step in equal[key]])
            continue
        if key not in best:
            matches = ((candidate, *matched(step.tokens, candidate.tokens)) for candidate in detailed)
            best[key] = max(matches, key=lambda match: len(match[1]))
        candidates.append([_pair(step, *best[key])])
    return candidates


def _pair(step: _Step, detailed_step: _Step, steady_rows: Ints, detailed_rows: Ints) -> _Pair:
    """Bounds of matched events and of the steps, in order on both sides."""
    steady, detailed = (
        np.concatenate(([side.start], side.spans.starts[rows], side.spans.ends[rows], [side.end]))
        for side, rows in ((step, steady_rows), (detailed_step, detailed_rows))
    )
    order = np.lexsort((detailed, steady))
    in_order = np.maximum.accumulate(detailed[order])
    return _Pair((step.spans.rows[steady_rows], detailed_step.spans.rows[detailed_rows]), steady[order], in_order)


class CutStep(Struct, frozen=True):
    """A detailed step, cut at its calls and returns and at the anchors."""

    points: Ints
    passed: Floats  # between a point and the next, ns
    calls: Ints  # recorded calls and returns at the point that it begins with
    gap: Rows  # the anchors that it is between

    @staticmethod
    def of(moments: Ints, anchors: Ints) -> "CutStep":
        """The step between the first anchor and the last, given all calls and returns of the recording."""
        first, last = np.searchsorted(moments, (anchors[0], anchors[-1]))
        inside = moments[first:last]
        points = distinct(np.concatenate((inside, anchors)))
        calls = np.diff(np.searchsorted(inside, points))
        return CutStep(points, np.diff(points).astype(np.float64), calls, count_up_to(anchors, points[:-1]) - 1)


class Clock(Struct, frozen=True):
    """The time of a detailed step without what recording each call and each return in it cost.

    If the time between two anchors is longer than in the steady step, its calls are the reason: each costs its share of
    the difference.
    """

    points: Ints
    reading: Floats  # at each point, since the first

    @staticmethod
    def of(step: CutStep, steady: Ints) -> "Clock":
        """The clock, given the anchors in the steady step."""
        between = np.diff(steady).astype(np.float64)
        cost = _cost_of_recording(step, between)
        net = _left(step.passed, step.calls, cost[step.gap])
        return Clock(step.points, np.concatenate(([0.0], np.cumsum(net))))

    def read(self, at: Ints) -> Floats:
        """The clock at these moments."""
        start = self.points[0]
        reading: Floats = np.interp(
            (at - start).astype(np.float64), (self.points - start).astype(np.float64), self.reading
        )
        return reading


def _read(pair: _Pair, owners: StepFunction, clock: Clock, chosen: Bools) -> tuple[Ints, Ints, Ints]:
    """Starts, owners and whether they are divided, of the stretches between the chosen anchors of a steady step; its
    end has no owner."""
    steady, detailed = pair.steady, pair.detailed
    low, high = np.searchsorted(owners.edges, (detailed[0], detailed[-1]), side="right")
    changes = owners.edges[low:high]
    changes = changes[changes < detailed[-1]]
    gap = np.searchsorted(detailed, changes, side="right") - 1
    is_inside = chosen[gap] & (steady[gap + 1] > steady[gap]) & (changes > detailed[gap])
    changes, gap = changes[is_inside], gap[is_inside]
    at_anchors, at = clock.read(detailed), clock.read(changes)
    first, last = at_anchors[gap], at_anchors[gap + 1]
    share = np.clip((at - first) / np.where(last > first, last - first, 1.0), 0.0, 1.0)
    moved = steady[gap] + np.rint(share * (steady[gap + 1] - steady[gap])).astype(np.int64)
    shared = np.zeros(len(steady), np.int64)
    shared[gap] = 1
    begins = np.append(chosen, True)  # the last anchor ends the step
    starts = np.concatenate((steady[begins], moved))
    value = np.concatenate((np.append(owners.at(detailed[:-1]), 0)[begins], owners.at(changes)))
    divided = np.concatenate((shared[begins], np.ones(len(moved), np.int64)))
    place = np.concatenate((np.arange(len(steady))[begins], gap))
    order = np.lexsort((np.concatenate((detailed[begins], changes)), place, starts))
    starts, value, divided = starts[order], value[order], divided[order]
    ends = np.append(starts[1:] > starts[:-1], True)  # of several at one moment, the last
    return starts[ends], value[ends], divided[ends]


def _left(passed: Floats, calls: Ints, cost: Floats) -> Floats:
    """What remains between each point and the next without the cost of the calls and returns recorded at the first."""
    net: Floats = np.maximum(passed - calls * cost, _LEAST_SHARE * passed)
    return net


def _cost_of_recording(step: CutStep, steady: Floats) -> Floats:
    """For each gap, what a call or return costs, so that the rest is as long as in the steady step.

    The rest falls as the cost rises, ever more slowly as parts of the gap reach their least share: Newton's steps from
    0 never pass the cost that is looked for.
    """
    passed, calls, gap = step.passed, step.calls, step.gap
    cost, least_ns = np.zeros(len(steady)), _LEAST_SHARE * passed
    for _ in range(_STEPS):
        net = _left(passed, calls, cost[gap])
        too_long = np.bincount(gap, net, len(steady)) - steady
        slope = np.bincount(gap, np.where(net > least_ns, calls, 0), len(steady))
        if not (too_long[slope > 0] > 1).any():
            break
        cost += np.where(slope > 0, np.maximum(too_long, 0.0) / np.maximum(slope, 1.0), 0.0)
    return cost
