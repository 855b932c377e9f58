"""What would a step take if something were different? A range for each change, by replaying steps of the trace.

A replay keeps the order in which the host issues work and the time that each piece of work takes; it cannot know of
work that a change adds. So each change has a range: at best, the change costs nothing, and nothing is late without a
cause that was recorded; at worst, it costs what such changes are known to cost at most. Both halves of the steps are
replayed, each after what was queued before it; the range covers the share of its own length that is left of each, and
is wider by what a replay cannot explain. A smaller gain than that is none. No step takes less than the GPU's work that
a change leaves nor, where a change takes none of the host's time, than the host; and none gets shorter by more than
all that a change takes away.
"""

import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec import Struct

from tracekit.analyses import Answer, Status, analysis
from tracekit.base.intervals import Bools, Ints, Union, runs
from tracekit.base.units import duration, many, percent
from tracekit.engine.buckets import BOUNDS, CODES, MAY_WAIT, Bound
from tracekit.engine.dependencies import LAUNCH
from tracekit.engine.replay import Edit
from tracekit.engine.wall import is_sync
from tracekit.engine.windows import Floats, Window, busy_ns, windows
from tracekit.profile import Profile
from tracekit.profile.recording_words import in_words
from tracekit.trace import Trace
from tracekit.trace.facts.laws.sides import has_operators
from tracekit.trace.own_waits import own_waits
from tracekit.trace.roles import KERNEL, OPERATOR
from tracekit.trace.rows import outermost
from tracekit.trace.schema import LABEL, column
from tracekit.vocabulary.kernel_class import kernel_class

SUMMARY = pa.schema(
    [
        column("if", LABEL, "what would be different", role="name"),
        column("best_ns", pa.float64(), "what a step would take at best", "ns"),
        column("worst_ns", pa.float64(), "what it would take at worst", "ns"),
        column(
            "gain",
            pa.float64(),
            "share of the step that is saved if all goes well, without the margin of best_ns; 0: no gain expected",
            "share",
        ),
        column("then", LABEL, "what would take most of the time that decides when a step is done", role="name"),
        column("less_if", LABEL, "what would make the gain smaller", role="name"),
        column("step", pa.int64(), "number of the first step that was replayed", role="detail"),
    ]
)
_TITLE = "What if"
_MIN_GAIN = 0.01  # of a step: a smaller gain is within what two windows of the same steps differ
_UNEXPLAINED = 0.02  # of a window: with more, what the replay lacks is more than what it would tell
_TWICE = 2
_FEWEST_NODES = 2  # of a CUDA graph: one kernel is launched as fast without one
_MIN_WAITS_A_STEP = 0.5  # waits a step: fewer are not part of most steps
_STRETCH_NS = 1_000_000  # what the host does for as long without a launch is something else than launching
_COMPUTING_NS = 100_000  # what an operator computes on the CPU for as long, no graph of kernels can take in
_LOADER_FACTOR = 1.2  # as long takes the main thread beside the workers that load for it
# Of CUDA graphs, ns: a launch, each node of it, and the gaps between its kernels; at best and at worst.
_LAUNCH_NS, _NODE_NS, _GAPS_NS = (5_000, 10_000), (0.0, 1_500.0), ((0, 500), (1_500, 1 << 40))
_PAGEABLE = re.compile(r"Memcpy HtoD \(Pageable -> .*", re.DOTALL)
# Of the time of a copy from pageable memory, one from pinned memory takes: at best, and at worst.
_PINNED = (0.1, 0.9)
_SUBMITTING_NS = 10_000  # takes the call for it
_THEN: dict[Bound, str] = {
    "gpu": "the GPU's work",
    "communication": "communication",
    "copies": "copies",
    "gaps": "gaps on the GPU",
    "host": "the host",
    "syncs": "syncs",
    "compiling": "compiling",
    "data": "data loading",
    "code loading": "loading GPU code",
    "profiler": "the profiler",
    "cpu": "CPU compute",
    "unrecorded": "what was not recorded",
}


class Scenario(Struct, frozen=True):
    """One change: what it is called, what it does to a window at best and at worst, and what would make it less.

    `host_ns` is what the host needs for a step beside what is left of its work, at best and at worst; `left` is which
    share of GPU activities is left at best, given their rows. `of_calls` says that of the host's time it takes only
    that of calls. `most_ns` is how long a step spends on what it takes away, where all steps can be asked for it.
    """

    name: str
    removals: Callable[[Window], tuple[Edit, Edit]]
    less_if: str
    host_ns: tuple[float, float] = (0.0, 0.0)
    left: Callable[[Trace, Ints], Floats] = lambda _, rows: np.ones(len(rows))
    of_calls: bool = False
    most_ns: float = math.inf


@analysis("what_if", rank=12)
def answer(profile: Profile) -> Answer:
    """One row per change that the trace allows to replay, the largest gain first."""
    trace, mean = profile.trace, profile.means["wall"]
    if mean is None or not mean.step_ns:
        return _no_answer("Cannot be told: the wall time is unknown.")
    if trace.census.any(lambda roles: roles.communication):
        return _no_answer("Cannot be told: the collectives wait for other ranks, of which this trace knows nothing.")
    if profile.all_compile:
        return _no_answer("Cannot be told: every step compiles.")
    spoiled = {"gpu work", "gpu idle", "host time", "steps"}
    breach = next((breach for breach in trace.health if breach.is_grave and spoiled & {*breach.touches}), None)
    if breach is not None:
        return _no_answer(f"Cannot be told. {breach.message}")
    is_whole = whole_steps(profile)
    if not is_whole.any():
        return _no_answer("Cannot be told: each step lacks work that was launched.")
    replayed = windows(trace, is_whole)
    if not replayed:
        why = "no step has work on a GPU whose launches are known" if trace.device == "gpu" else "there is no GPU"
        return _no_answer(f"Nothing to replay: {why}.", "absent")
    unexplained = next((window.unexplained for window in replayed if window.unexplained > _UNEXPLAINED), None)
    if unexplained is not None:
        return _no_answer(
            f"Cannot be told: {percent(unexplained)} of the steps that were replayed are GPU work that starts late "
            "without a cause in this recording."
        )
    rows = [_row(change, replayed, profile) for change in changes(profile, replayed)]
    rows.sort(key=lambda row: row["best_ns"])
    worded = [row | {"if": in_words(profile, row["if"])} for row in rows]
    summary, gain = pa.Table.from_pylist(worded, schema=SUMMARY), max((row["gain"] for row in rows), default=0.0)
    return Answer("what_if", _TITLE, _sentence(rows, mean.step_ns), summary, worth=gain)


def _no_answer(sentence: str, status: Status = "unanswered") -> Answer:
    return Answer("what_if", _TITLE, sentence, SUMMARY.empty_table(), worth=0.0, status=status)


def whole_steps(profile: Profile) -> Bools:
    """The counted steps of which all is recorded: each launch of a kernel has its work, and none lacks launches that
    others have."""
    trace, steps = profile.trace, profile.trace.steps
    launched = np.zeros(len(steps), bool)
    launching = steps.of(trace.ts_ns[trace.links.launches])
    launched[launching[launching >= 0]] = True
    is_whole: Bools = profile.counted & (launched | ~launched.any())
    lacking = trace.coverage.step[trace.coverage.is_incomplete]
    is_whole[lacking[lacking >= 0]] = False
    return is_whole


def changes(profile: Profile, replayed: list[Window]) -> Iterator[Scenario]:
    """The changes that these windows of the profile allow to replay."""
    trace = profile.trace
    waits = sum(len(_syncs(window)) for window in replayed) / sum(window.last - window.first for window in replayed)
    if waits >= _MIN_WAITS_A_STEP:
        yield Scenario(
            f"the {'wait' if waits == 1 else many(waits, 'wait')} for the GPU went",
            lambda window: _both(Edit(returns=_syncs(window))),
            "Python needs the values that it waits for",
            most_ns=_mean_ns(profile, _sync_calls(trace, *_span(profile))),
        )
    host = profile.means["host"]
    if host is not None and (loading_ns := host.parts.get("dataload")):
        loading = _buckets("dataload")
        yield Scenario(
            "batches were always ready",
            lambda window: (
                Edit(host=window.host_time(loading)),
                Edit(host=window.host_time(loading), host_factor=_LOADER_FACTOR),
            ),
            "the loader's workers take cores from the training",
            most_ns=loading_ns,
        )
    if any(_is_pageable(trace, window.activities).any() for window in replayed):
        less_if = "the copies are needed at once"
        copying_ns = _mean_ns(profile, _pageable_copies(profile))
        yield Scenario(
            "copies came from pinned memory", _pinned, less_if, left=_left_of_copies, of_calls=True, most_ns=copying_ns
        )
    # Without operators, what the host computes between launches cannot be told from what submits them.
    if has_operators(trace) and not (trace.census.any(lambda roles: roles.graph_launch) or waits):
        yield from _as_a_graph(replayed)
    yield Scenario(
        "half of the launches went (fused kernels)",
        lambda window: _both(_half_of_submitting(window)),
        "kernels cannot be fused",
    )
    if (label := _costliest_class(replayed)) is not None:

        def left(trace: Trace, rows: Ints) -> Floats:
            return np.where([name == label for name in _classes(trace, rows)], 1 / _TWICE, 1.0)

        yield Scenario(
            f"{label} kernels took half as long",
            lambda window: _both(Edit(device=_saved_ns(window, left(trace, window.activities)))),
            "their inputs come from memory that is as slow as before",
            left=left,
        )


def _both(removal: Edit) -> tuple[Edit, Edit]:
    return removal, removal


def _buckets(*keys: str) -> Bools:
    """Which codes are those of these buckets."""
    are_chosen = np.zeros(len(CODES) + 1, bool)
    are_chosen[[CODES[key] for key in keys]] = True
    return are_chosen


def _syncs(window: Window) -> Ints:
    """The calls of the window that wait for the GPU."""
    return _sync_calls(window.trace, window.low, window.high)


def _sync_calls(trace: Trace, low: int, high: int) -> Ints:
    """The calls from `low` to `high` that wait for the GPU."""
    rows = np.arange(*np.searchsorted(trace.ts_ns, (low, high)))
    part = trace.events_at(rows)
    calls = rows[part.roles.runtime & part.process & part.lasting]
    calls = calls[is_sync(trace, calls)]
    return np.setdiff1d(calls, own_waits(trace, calls))


def _saved_ns(window: Window, left: Floats) -> Ints:
    """By how much each of the window's activities gets shorter."""
    lengths = window.trace.events_at(window.activities).end_ns - window.trace.ts_ns[window.activities]
    saved_ns: Ints = (lengths * (1 - left)).astype(np.int64)
    return saved_ns


def _span(profile: Profile) -> tuple[int, int]:
    """From when the first of the counted steps is issued until the last is done."""
    steps = profile.trace.steps
    return int(steps.issued[profile.counted].min()), int(steps.done[profile.counted].max())


def _mean_ns(profile: Profile, rows: Ints) -> float:
    """How long any of these events lasts, for each of the counted steps."""
    trace = profile.trace
    return Union.of(trace.ts_ns[rows], trace.events_at(rows).end_ns).total() / profile.counted_steps


def _pageable_copies(profile: Profile) -> Ints:
    """The copies from pageable memory that the counted steps submit or run, with the calls that submit them."""
    trace, links, (low, high) = profile.trace, profile.trace.links, _span(profile)
    is_copy = np.isin(links.activities, trace.where(lambda part: part.roles.named(_PAGEABLE)))
    copies, calls = links.activities[is_copy].astype(np.int64), links.launches[is_copy].astype(np.int64)
    is_within = (trace.events_at(copies).end_ns > low) & (trace.ts_ns[calls] < high)
    return np.concatenate([copies[is_within], calls[is_within]])


def _is_pageable(trace: Trace, rows: Ints) -> Bools:
    """Which of these activities copy from pageable memory."""
    return trace.events_at(rows).roles.named(_PAGEABLE)


def _left_of_copies(trace: Trace, rows: Ints, factor: float = _PINNED[0]) -> Floats:
    return np.where(_is_pageable(trace, rows), factor, 1.0)


def _pinned(window: Window) -> tuple[Edit, Edit]:
    nodes, trace = window.run.nodes, window.trace
    launches = nodes.launch[window.run.activities][_is_pageable(trace, window.activities)]
    calls = nodes.row[launches[launches >= 0]]
    # A call that copies from pageable memory fills the buffers for the copy itself; it may return just before the copy
    # ends, so that it does not block. From pinned memory, it only submits.
    driving = calls[np.isin(trace.track[calls], trace.threads.driving)]
    submitted, returned = trace.ts_ns[driving] + _SUBMITTING_NS, trace.events_at(driving).end_ns
    copying = Union.of(submitted[submitted < returned], returned[submitted < returned])
    best, worst = (
        Edit(host=copying, device=_saved_ns(window, _left_of_copies(trace, window.activities, factor)), returns=calls)
        for factor in _PINNED
    )
    return best, worst


def _as_a_graph(replayed: list[Window]) -> Iterator[Scenario]:
    """A step's kernels as one CUDA graph, if each step has the same ones, and nothing waits for them."""
    kernels = set()  # of each step, by name, in the order in which they run
    for window in replayed:
        trace, nodes = window.trace, window.run.nodes
        active = np.flatnonzero(window.run.activities & (nodes.launch >= 0))
        step = trace.steps.of(nodes.start[nodes.launch[active]])
        names = trace.name_codes[nodes.row[active]]
        kernels |= {tuple(names[step == number].tolist()) for number in range(window.first, window.last)}
    if len(kernels) != 1 or (number := len(next(iter(kernels)))) < _FEWEST_NODES:
        return

    def removals(window: Window) -> tuple[Edit, Edit]:
        """What a slow host does from the first of each step's launches to the last, with the operators that make
        them."""
        trace = window.trace
        calls = window.run.nodes.row[window.run.nodes.kind == LAUNCH]
        makers = trace.operators.of(calls)
        begins = np.where(makers >= 0, trace.ts_ns[makers], trace.ts_ns[calls])
        ends = np.where(makers >= 0, trace.events_at(makers).end_ns, trace.events_at(calls).end_ns)
        bounds = runs(trace.steps.of(trace.ts_ns[calls]))
        launching = Union.of(np.minimum.reduceat(begins, bounds[:-1]), np.maximum.reduceat(ends, bounds[:-1]))
        submitting = window.host_time(_buckets(*BOUNDS["host"])).common(launching)
        submitting = submitting.minus(_without_launches(window, _COMPUTING_NS))
        return Edit(host=submitting, gap_ns=_GAPS_NS[0]), Edit(host=submitting, gap_ns=_GAPS_NS[1])

    yield Scenario(
        f"the {many(number, 'kernel')} of a step were one CUDA graph",
        removals,
        "inputs have to be copied into the graph's own memory",
        (_LAUNCH_NS[0] + _NODE_NS[0] * number, _LAUNCH_NS[1] + _NODE_NS[1] * number),
    )


def _half_of_submitting(window: Window) -> Edit:
    """The first half of each time in which the host dispatches what launches something, or launches it, unless it is
    too long for that."""
    starts, ends = window.host_moments(_buckets("dispatch", "kernel_launch"))
    usual = (ends - starts > 1) & (ends - starts < _STRETCH_NS) & ~_without_launches(window).covers(starts)
    return Edit(host=Union(starts[usual], (starts + ends)[usual] // 2))


def _without_launches(window: Window, least_ns: int = 0) -> Union:
    """When outermost operators run that launch nothing, if they last that long: they compute on the CPU."""
    trace, nodes = window.trace, window.run.nodes
    rows = np.arange(*np.searchsorted(trace.ts_ns, (window.low, window.high)))
    part = trace.events_at(rows)
    operators = outermost(trace, rows[(part.roles.kind == OPERATOR) & ~part.roles.annotation & part.lasting])
    starts, ends = trace.ts_ns[operators], trace.events_at(operators).end_ns
    first, last = np.searchsorted(np.sort(trace.ts_ns[nodes.row[nodes.kind == LAUNCH]]), (starts, ends))
    alone = (first == last) & (ends - starts >= least_ns)
    return Union.of(starts[alone], ends[alone])


def _classes(trace: Trace, rows: Ints) -> list[str | None]:
    """The class of each of these activities; None for copies."""
    kernels = trace.events_at(rows).roles.kind == KERNEL
    codes = trace.name_codes[rows].tolist()
    labels = {code: kernel_class(trace.names[code]) for code in {*codes}}
    return [labels[code] if is_kernel else None for code, is_kernel in zip(codes, kernels.tolist(), strict=True)]


def _costliest_class(replayed: list[Window]) -> str | None:
    times: dict[str, int] = {}
    for window in replayed:
        nodes = window.run.nodes
        lengths = (nodes.end - nodes.start)[window.run.activities].tolist()
        for label, ns in zip(_classes(window.trace, window.activities), lengths, strict=True):
            if label is not None:
                times[label] = times.get(label, 0) + ns
    return max(times, key=lambda label: times[label], default=None)


def _row(change: Scenario, replayed: list[Window], profile: Profile) -> dict[str, Any]:
    trace, view, mean, host = profile.trace, profile.views["wall"], profile.means["wall"], profile.means["host"]
    assert mean is not None
    step_ns = mean.step_ns
    removals = [change.removals(window) for window in replayed]
    ranges = [
        window.range(*removal, change.left(window.trace, window.activities))
        for window, removal in zip(replayed, removals, strict=True)
    ]
    slack = max(_MIN_GAIN, *(window.unexplained for window in replayed)) * step_ns
    # What a counted step takes at least, whatever the replay says: the work that is left of the GPU and, of a change
    # that takes none of the host's own time, the host without what may wait for the GPU.
    activities, lows = trace.where(lambda part: part.roles.gpu & part.lasting), view.starts_ns[profile.counted]
    busy = busy_ns(trace, activities, change.left(trace, activities), lows, lows + view.step_ns[profile.counted])
    least_ns = float(busy.mean())
    takes_host_time = not change.of_calls and any(len(best.host.starts) for best, _ in removals)
    if not takes_host_time and host is not None:
        least_ns = max(least_ns, host.step_ns - sum(host.parts.get(key, 0.0) for key in MAY_WAIT))
    fastest_ns = min(max(change.host_ns[0], least_ns, step_ns - change.most_ns), step_ns)
    best = max(step_ns * min(range.best for range in ranges), fastest_ns)
    worst = max(step_ns * max(range.worst for range in ranges), change.host_ns[1], best)
    gain = 1 - best / step_ns
    return {
        "if": change.name,
        "best_ns": max(best - slack, fastest_ns),
        "worst_ns": min(worst + slack, step_ns),
        "gain": gain if gain >= _MIN_GAIN else 0.0,
        "then": _THEN[min(ranges, key=lambda range: range.best).bound],
        "less_if": change.less_if,
        "step": replayed[0].trace.steps.number[replayed[0].first],
    }


def _sentence(rows: list[dict[str, Any]], step_ns: float) -> str:
    if not rows:
        return "Nothing that could be different was found."
    # That kernels become faster is no change that one makes: it is told where nothing else helps.
    first = next((row for row in rows if row["gain"] and "took half as long" not in row["if"]), rows[0])
    if not first["gain"]:
        return f"No gain is expected of any change that was replayed: {first['then']} would still decide a step's time."
    # Without the gain: that leaves out the margin of the time, and would seem to be worked out wrongly beside it.
    best = duration(first["best_ns"])
    return f"If {first['if']}: at best {duration(step_ns)} → {best} a step. Less if {first['less_if']}."
