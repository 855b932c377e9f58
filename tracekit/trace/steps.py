"""When was each step issued, when did its work begin, and when was it done? Which host thread drives the training, and
which threads help it? Where a trace has no steps, the part that repeats is found.
"""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tracekit.base.intervals import NO_INTS, Bools, Ints, Rows, count_up_to, distinct, place_among, runs
from tracekit.base.units import count
from tracekit.trace.own_waits import own_end
from tracekit.trace.roles import DATALOAD, OPERATOR, OPTIMIZER_STEP, PYTHON, STEP, USER, Ask
from tracekit.trace.rows import AFTER, BEFORE, at_moments, outermost

if TYPE_CHECKING:
    from tracekit.trace.model import Trace

_MIN_MARKED_ITERATIONS = 2  # iterations that an optimizer or a loader marks
_LEAST_UNMARKED = 3  # repetitions of a sequence of operators
# Of the usual number of operators: with less, the recording began or ended in the middle of an iteration.
_MIN_OPERATORS_OF_A_WHOLE_STEP = 0.5
_WHOLE_TURN = 0.9  # of the optimizers' steps must repeat after so many
_MIN_COVERAGE = 0.8  # of the time from the main thread's first work to its last: iterations are most of a recording
_WHOLE_LENGTH = 0.95  # of the shortest other iteration: one that takes less at an end that nothing marks is cut off
_AS_GOOD_A_PERIOD = 0.99  # of what the best period explains: a shorter one that explains as much is the period
_TRIED = 64  # periods, at most
_WHOLE_PASS = re.compile(
    r"Torch-Compiled Region: .*|## Call CompiledFxGraph .*|(?:cuda|hip|cu)GraphLaunch.*", re.DOTALL
)
_MODULE = re.compile(r"nn\.Module: .*", re.DOTALL)  # with the number of the instance
_TO_OR_FROM_HOST = re.compile(r"Memcpy (?:HtoD|DtoH).*|aten::(?:item|_local_scalar_dense)", re.DOTALL)


class StepTable(Struct, frozen=True):
    """One row per step, in order. All times are in ns on the trace's clock.

    `issued` is where the annotation starts and `returned` where it ends; the step's time, in which its launches are
    looked for, is `[issued, until)`; its work takes `[begin, done)`.
    """

    number: list[int]
    issued: Ints
    returned: Ints
    until: Ints
    begin: Ints
    done: Ints
    annotated: bool  # False: the trace has no annotated steps; it is one step, unless steps were inferred
    inferred: str | None = None  # what steps without annotations were inferred from
    whole: Bools | None = None  # of inferred steps, those recorded from their start to their end; None: all
    own_end: tuple[int, int] = (0, 0)  # the recording's own wait at its end, as far as it was cut off the last step

    def __len__(self) -> int:
        return len(self.number)

    @property
    def window(self) -> tuple[int, int]:
        """The time from the first step's issue to the end of the last one's work."""
        return (int(self.issued[0]), int(self.done[-1])) if len(self.number) else (0, 0)

    def of(self, points: Ints) -> Ints:
        """The step that contains each moment; −1 for none."""
        if not len(self.number):
            return np.full(len(points), -1)
        index = place_among(self.issued, points, after=True) - 1
        return np.where((index >= 0) & (points < self.until[np.maximum(index, 0)]), index, -1)


def in_steps(is_selected: Bools, steps: Ints | Rows) -> Bools:
    """Which of these indices of steps are of a chosen step; −1, which stands for no step, is not."""
    mask: Bools = np.append(is_selected, False)[steps]  # −1 gets what was appended
    return mask


def find_steps(trace: "Trace") -> StepTable:
    """The steps of the main thread; without annotations, the whole trace as step 0 or, on request, what repeats."""
    steps = _find_steps(trace, AFTER)
    cut = own_end(trace) if trace.cuts_own_end and len(steps) else None
    if cut is None or not steps.issued[-1] < cut < steps.done[-1]:
        return steps
    shorter = _find_steps(trace, cut)
    return replace(shorter, own_end=(int(shorter.done[-1]), int(steps.done[-1])))


def _find_steps(trace: "Trace", cut: int) -> StepTable:
    """The steps; of the host, what comes after `cut` belongs to none."""
    main = trace.threads.main
    if main is None or not trace.census.any(lambda roles: roles.step):
        iterations = find_iterations(trace) if trace.infers_steps else None
        if iterations is None:
            return _single_step(trace, cut)
        steps = _of_iterations(trace, iterations.starts, np.minimum(iterations.ends, cut))
        return replace(steps, annotated=False, inferred=iterations.basis, whole=iterations.whole)
    annotations = trace.where(lambda part: part.roles.named(STEP))
    rows = annotations[trace.events_at(annotations).roles.step & (trace.track[annotations] == main)]
    names = (trace.names[code] for code in trace.name_codes[rows].tolist())
    numbers = [int(match[1]) for match in map(STEP.fullmatch, names) if match is not None]
    starts, ends = trace.ts_ns[rows], trace.events_at(rows).end_ns
    order = sorted(range(len(rows)), key=lambda k: (starts[k], ends[k], numbers[k]))
    issued, returned = starts[order], ends[order]
    returned[-1] = min(returned[-1], cut)
    end = np.append(issued[1:], returned[-1])
    return _lasting_until_done(trace, [numbers[k] for k in order], issued, returned, end)


class Iterations(Struct, frozen=True):
    """The start and end of each iteration, ns, how they were recognised, and which of them were recorded whole.

    `coverage` is their share of the time from the main thread's first work to its last.
    """

    starts: Ints
    ends: Ints
    basis: str
    whole: Bools
    coverage: float = 1.0


def _of_iterations(trace: "Trace", starts: Ints, ends: Ints) -> StepTable:
    return _lasting_until_done(trace, [*range(len(starts))], starts, ends, np.append(starts[1:], ends[-1]))


def _single_step(trace: "Trace", cut: int) -> StepTable:
    start, end, one_clock = AFTER, BEFORE, not trace.impossible.two_clocks
    for part in trace.parts():
        for is_counted, until in ((part.process, cut), (part.roles.gpu & one_clock, AFTER)):
            lasting = part.rows(is_counted & part.lasting)
            if len(lasting):
                events = trace.events_at(lasting)
                start, end = min(start, int(events.ts_ns[0])), max(end, min(int(events.end_ns.max()), until))
    bounds = np.full(1, start, np.int64), np.full(1, end, np.int64)
    low, high = bounds if start < end else (NO_INTS, NO_INTS)
    return StepTable([0] * len(low), low, high, high, low, high, False)


def _lasting_until_done(trace: "Trace", numbers: list[int], issued: Ints, returned: Ints, until: Ints) -> StepTable:
    steps = StepTable(numbers, issued, returned, until, issued, returned, True)
    work_end, backlog = returned.copy(), BEFORE
    for activities, launches in trace.links.some():
        events = trace.events_at(activities)
        lasting = events.lasting  # an event without a duration bounds nothing
        launched, ends = trace.ts_ns[launches[lasting]], events.end_ns[lasting]
        owner = steps.of(launched)
        np.maximum.at(work_end, owner[owner >= 0], ends[owner >= 0])
        backlog = max(backlog, int(ends[launched < issued[0]].max(initial=BEFORE)))
    backlog = max(backlog, _unlinked_backlog(trace))
    reach = np.maximum.accumulate(np.append(backlog if backlog > BEFORE else issued[0], work_end))
    return StepTable(numbers, issued, returned, until, np.maximum(issued, reach[:-1]), reach[1:], True)


def _unlinked_backlog(trace: "Trace") -> int:
    """The end of work that was submitted before the recording: it has no call, and its id is below that of every
    call."""
    if trace.links.gpu == len(trace.links.activities) or trace.impossible.two_clocks:
        return BEFORE
    first_id, ends = int(np.iinfo(np.int64).max), BEFORE
    for part in trace.parts():
        calls = part.roles.runtime & part.process & (part.correlation != 0)
        first_id = min(first_id, int(part.correlation[calls].min(initial=first_id)))
    for part in trace.parts():
        older = part.roles.gpu & part.lasting & (part.correlation != 0) & (part.correlation < first_id)
        older[older] = trace.links.launch(part.rows(older)) < 0
        ends = max(ends, int(part.end_ns[older].max(initial=BEFORE)))
    return ends


def find_iterations(trace: "Trace") -> Iterations | None:
    """The repeated iterations of the main thread that are most of the recording; None if there are none."""
    iterations = find_repetition(trace)
    return iterations if iterations is not None and iterations.coverage >= _MIN_COVERAGE else None


def find_repetition(trace: "Trace") -> Iterations | None:
    """What repeats on the main thread, however little of the recording that is; None if nothing does."""
    main = trace.threads.main
    if main is None:
        return None
    # What the main thread does: operators, and calls that submit work, that no other operator encloses.
    works = trace.where(lambda part: (part.roles.operator | part.roles.launch) & part.lasting & (part.track == main))
    operators = outermost(trace, works)
    if not len(operators):
        return None
    repetitions: list[Iterations] = []
    for by_marks in (_by_optimizer, _by_loader, _by_operators):
        iterations = by_marks(trace, main, operators)
        if iterations is not None:
            repetitions.append(replace(iterations, coverage=_coverage(trace, operators, iterations)))
            if repetitions[-1].coverage >= _MIN_COVERAGE:
                return repetitions[-1]
    return max(repetitions, key=lambda iterations: iterations.coverage, default=None)


def _by_optimizer(trace: "Trace", main: int, operators: Ints) -> Iterations | None:
    marks = trace.where(lambda part: part.roles.named(OPTIMIZER_STEP) & part.roles.annotation & (part.track == main))
    if len(marks) < _MIN_MARKED_ITERATIONS:
        return None
    _, repeated, marks_per_iteration = _repeated(trace.name_codes[marks])  # several optimizers may step in an iteration
    marks_per_iteration = marks_per_iteration if repeated >= _WHOLE_TURN * len(marks) else 1
    ends = trace.events_at(marks).end_ns[marks_per_iteration - 1 :: marks_per_iteration]
    bounds = np.concatenate(([trace.ts_ns[operators[0]]], ends))
    return _complete_iterations(trace, operators, bounds, "the optimizer's steps", 0)


def _by_loader(trace: "Trace", main: int, operators: Ints) -> Iterations | None:
    marks = trace.where(lambda part: part.roles.named(DATALOAD) & part.roles.annotation & (part.track == main))
    if len(marks) < _MIN_MARKED_ITERATIONS:
        return None
    starts, end = trace.ts_ns[marks], trace.events_at(operators[-1:]).end_ns
    end = np.minimum(end, starts[-1] + np.diff(starts).max())  # what comes long after the last batch is something else
    bounds = np.append(starts, end[end > starts[-1]])  # a loader is called once more than it has batches
    return _complete_iterations(trace, operators, bounds, "the batches asked for", -1)


def _complete_iterations(trace: "Trace", operators: Ints, bounds: Ints, basis: str, unmarked: int) -> Iterations | None:
    """The iterations in which something is done, without incomplete ones at either end."""
    operator_counts = np.histogram(trace.ts_ns[operators], bounds)[0] if (np.diff(bounds) > 0).all() else np.zeros(0)
    working = np.flatnonzero(operator_counts)
    if not len(working):
        return None
    is_complete = operator_counts >= _MIN_OPERATORS_OF_A_WHOLE_STEP * np.median(operator_counts[working])
    first, last = int(is_complete.argmax()), len(is_complete) - int(is_complete[::-1].argmax())
    rows_in_loop = working[(working >= first) & (working < last)]
    if len(rows_in_loop) < _MIN_MARKED_ITERATIONS:
        return None
    starts, ends = bounds[rows_in_loop], bounds[rows_in_loop + 1]
    is_open = rows_in_loop[unmarked] in (0, len(bounds) - 2)  # the one of which nothing marks the outer end
    is_whole = _whole(trace, starts, ends, unmarked) if is_open else np.ones(len(rows_in_loop), bool)
    return Iterations(starts, ends, basis, is_whole)


def _whole(trace: "Trace", starts: Ints, ends: Ints, unmarked: int) -> Bools:
    """Which iterations were recorded whole: the first (0) or last (−1), whose outer end nothing marks, may not be."""
    steps = _of_iterations(trace, starts, ends)
    lengths = steps.done - steps.begin
    is_whole = np.ones(len(lengths), bool)
    is_whole[unmarked] = lengths[unmarked] >= _WHOLE_LENGTH * np.delete(lengths, unmarked).min()
    return is_whole


def _coverage(trace: "Trace", operators: Ints, iterations: Iterations) -> float:
    """The share of the time from the main thread's first work to its last that the iterations cover.

    Work before or after them that is a part of an iteration, which the recording cut off, counts as covered.
    """
    starts, ends = trace.ts_ns[operators], trace.events_at(operators).end_ns
    names, low, high = trace.name_codes[operators], iterations.starts, iterations.ends
    edges = np.searchsorted(starts, [low[0], high[0], low[-1], high[-1]])
    head, first = names[: edges[0]], names[edges[0] : edges[1]]
    last, tail = names[edges[2] : edges[3]], names[edges[3] :]
    start, end = min(int(starts[0]), int(low[0])), max(int(ends.max()), int(high[-1]))
    covered = int((high - low).sum())
    if np.array_equal(head, first[max(len(first) - len(head), 0) :]):
        covered += int(low[0]) - start
    if np.array_equal(tail, last[: len(tail)]):
        covered += end - int(high[-1])
    return covered / max(end - start, 1)


def _by_operators(trace: "Trace", main: int, operators: Ints) -> Iterations | None:
    """The repetitions of a sequence of operators, if something shows that they are no equal layers of one pass."""
    names = trace.name_codes[operators]
    first, length, period = _repeated(names)
    number = length // period
    if number < _LEAST_UNMARKED:
        return None
    covered = operators[first : first + number * period]
    edges = np.append(trace.ts_ns[covered[::period]], trace.events_at(covered[-1:]).end_ns)
    if length < len(operators) and not _are_passes(trace, edges, covered[:period]):
        return None
    # What repeats within one annotation or operator, such as `Optimizer.step`, are parameters.
    enclosing_rows = trace.where(
        lambda part: (
            ((part.roles.kind == OPERATOR) | (part.roles.kind == USER))
            & (part.track == main)
            & (part.ts_ns <= edges[0])
            & (part.end_ns >= edges[-1])
        )
    )
    if len(enclosing_rows):
        return None
    is_call = trace.events_at(covered[:period]).roles.launch
    of = "launch calls" if is_call.all() else "operators and launch calls" if is_call.any() else "operators"
    example = "a launch call" if is_call[0] else "an operator"
    sequence = example if period == 1 else f"a sequence of {count(period)} {of}"
    starts, ends = edges[:-1], edges[1:]
    return Iterations(starts, ends, f"{sequence} that occurs {number} times", _whole(trace, starts, ends, -1))


def _are_passes(trace: "Trace", edges: Ints, operators: Ints) -> bool:
    """Whether each repetition calls a compiled graph or the very same module, replays a CUDA graph, goes backward, or
    waits for a GPU or copies between it and the host: the layers of a model do none of these, each for itself."""
    names = [trace.names[code] for code in trace.name_codes[operators]]
    if any(map(_WHOLE_PASS.fullmatch, names)):
        return True
    calls = trace.where(
        lambda part: part.roles.backward_node | part.roles.sync_by_name | part.roles.named(_TO_OR_FROM_HOST)
    )
    modules = trace.where(lambda part: (part.roles.kind == PYTHON) & part.roles.named(_MODULE))
    of_modules = (modules[trace.name_codes[modules] == code] for code in distinct(trace.name_codes[modules]))
    # A module is entered before its first operator, so that one of its calls may lie before the first repetition.
    return _in_each(trace, calls, edges) or any(_in_each(trace, rows, edges, 1) for rows in of_modules)


def _in_each(trace: "Trace", rows: Ints, edges: Ints, but: int = 0) -> bool:
    """Whether one of these events starts in each repetition, but for a few."""
    return int((np.histogram(trace.ts_ns[rows], edges)[0] > 0).sum()) >= len(edges) - 1 - but


def _repeated(names: Rows) -> tuple[int, int, int]:
    """Where the longest repetition begins, how long it is, and its period in entries; (0, 0, 1) for none."""
    name_index = np.unique(names, return_inverse=True)[1]
    order = np.argsort(name_index, kind="stable")
    apart = np.diff(order)[np.diff(name_index[order]) == 0]  # of one name from one entry to the next
    periods, frequent = np.unique(apart, return_counts=True)
    candidates = periods[np.argsort(-frequent, kind="stable")][:_TRIED]
    repetitions = [(*_longest_run(names, period), period) for period in candidates.tolist() if 2 * period <= len(names)]
    best = max((length for _, length, _ in repetitions), default=0)
    good = [repetition for repetition in repetitions if repetition[1] >= max(_AS_GOOD_A_PERIOD * best, 1)]
    return min(good, key=lambda repetition: repetition[2], default=(0, 0, 1))


def _longest_run(names: Rows, period: int) -> tuple[int, int]:
    """Where the longest stretch begins whose entries are the same one period later, and its length with that period."""
    is_repeated: Bools = names[:-period] == names[period:]
    bounds = runs(is_repeated.astype(np.int8))
    lengths = np.diff(bounds) * is_repeated[bounds[:-1]]
    longest = int(lengths.argmax())
    return int(bounds[longest]), int(lengths[longest]) + period if lengths[longest] else 0


class Threads(Struct, frozen=True):
    """Tracks by role. `main` is None for a trace without any host event."""

    main: int | None
    helpers: tuple[int, ...]
    process: Bools  # for each track: whether it belongs to the main thread's process

    @property
    def driving(self) -> tuple[int, ...]:
        """The main thread and its helpers."""
        return () if self.main is None else (self.main, *self.helpers)

    @property
    def is_driving(self) -> Bools:
        """For each track: whether it is one of these."""
        mask = np.zeros(len(self.process), bool)
        mask[[*self.driving]] = True
        return mask


def find_threads(trace: "Trace") -> Threads:
    """The thread with the most steps, else launches, else operators, else events; and its helpers."""
    pids, tids = trace.tracks["pid"].to_pylist(), trace.tracks["tid"].to_pylist()
    candidates: tuple[Callable[[], Ints], ...] = (
        lambda: trace.census.by_track(lambda roles: roles.step, len(pids)),
        lambda: _outside_nodes(trace, lambda roles: roles.launch),
        lambda: _outside_nodes(trace, lambda roles: roles.operator),
        lambda: trace.census.by_track(lambda roles: roles.host, len(pids)),
    )
    counts = next((counts for candidate in candidates if (counts := candidate()).any()), None)
    if counts is None:
        return Threads(None, (), np.zeros(len(pids), bool))
    busiest = np.flatnonzero(counts == counts.max()).tolist()
    main = min(busiest, key=lambda track: (pids[track], tids[track]))
    process = np.array([pid == pids[main] for pid in pids], bool)
    helping = trace.census.by_track(lambda roles: roles.launch | roles.backward_node, len(pids))
    helpers = (int(track) for track in np.flatnonzero(process & (helping > 0)) if track != main)
    return Threads(main, tuple(sorted(helpers, key=lambda track: _number_first(tids[track]))), process)


def host_recorded(trace: "Trace") -> tuple[int, int]:
    """From when to when the training process was recorded, by its lasting events; never, if neither an operator nor a
    Python frame of it was: then what it did between calls of the runtime is unknown."""
    census = trace.census
    tells = census.roles.operator | (census.roles.kind == PYTHON)
    if not (tells & trace.threads.process[census.track]).any():
        return AFTER, AFTER
    start, end = host_span(trace)
    return start, max(start, end)


def host_span(trace: "Trace") -> tuple[int, int]:
    """From the first to the last moment that an event of the training process covers; the end comes first if none
    covers any."""
    start, end = AFTER, BEFORE
    for part in trace.parts():
        lasting = part.process & part.lasting
        start = min(start, int(part.ts_ns[lasting].min(initial=AFTER)))
        end = max(end, int(part.end_ns[lasting].max(initial=BEFORE)))
    return start, end


def _outside_nodes(trace: "Trace", ask: Ask) -> Ints:
    """How many of these events on each track start outside the autograd engine's nodes of their own thread."""
    counts = np.zeros(len(trace.tracks), np.int64)
    reach = np.full(len(trace.tracks), BEFORE, np.int64)  # when the last of the nodes seen on each track ends
    if not trace.census.any(lambda roles: roles.backward_node):
        return trace.census.by_track(ask, len(counts))
    for part in at_moments(trace):
        has_role, nodes = ask(part.roles), part.roles.backward_node
        for track in np.flatnonzero(np.bincount(part.track[has_role | nodes])).tolist():
            on_track = part.track == track
            starts = part.ts_ns[on_track & nodes]
            reached = np.maximum.accumulate(np.append(reach[track], part.end_ns[on_track & nodes]))
            points = part.ts_ns[on_track & has_role]
            counts[track] += int((reached[count_up_to(starts, points)] <= points).sum())
            reach[track] = reached[-1]
    return counts


def _number_first(tid: str) -> tuple[int, int, str]:
    try:
        return 0, int(tid), tid
    except ValueError:
        return 1, 0, tid
