"""What would a step take if something were different? A range for each change, by replaying steps of the trace.

A replay keeps the order in which the host issues work and the time that each piece of work takes; it cannot know of
work that a change adds. So each change has a range: at best, the change costs nothing, and nothing is late without a
cause that was recorded; at worst, it costs what such changes are known to cost at most. Both halves of the steps are
replayed; the range covers both, and is wider by what a replay cannot explain. A smaller gain than that is none.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from tracekit.analyses import Answer, Status, analysis, table
from tracekit.engine.buckets import CODES, Bound
from tracekit.engine.replay import Removal
from tracekit.engine.wall import is_sync
from tracekit.engine.windows import Window, windows
from tracekit.intervals import Bools, Ints, Union
from tracekit.kernel_class import kernel_class
from tracekit.profile import Profile
from tracekit.profile.recording_words import in_words
from tracekit.trace.own_waits import own_waits
from tracekit.trace.roles import KERNEL
from tracekit.trace.schema import LABEL, column
from tracekit.units import duration, many, percent

SUMMARY = pa.schema(
    [
        column("if", LABEL, "what would be different", role="name"),
        column("best_ns", pa.float64(), "what a step would take at best", "ns"),
        column("worst_ns", pa.float64(), "what it would take at worst", "ns"),
        column("gain", pa.float64(), "share of the step that is saved if all goes well; 0: no gain expected", "share"),
        column("then", LABEL, "what would take most of the time that decides when a step is done", role="name"),
        column("less_if", LABEL, "what would make the gain smaller", role="name"),
        column("step", pa.int64(), "number of the first step that was replayed", role="detail"),
    ]
)
_TITLE = "What if"
_LEAST = 0.01  # of a step: a smaller gain is within what two windows of the same steps differ
_UNEXPLAINED = 0.02  # of a window: with more, what the replay lacks is more than what it would tell
_TWICE = 2
_OFTEN = 0.5  # waits a step: fewer are not part of most steps
_STRETCH_NS = 1_000_000  # what the host does for as long without a launch is something else than launching
_LOADER_FACTOR = 1.2  # as long takes the main thread beside the workers that load for it
# Of CUDA graphs, ns: a launch, each node of it, and the gaps between its kernels; at best and at worst.
_LAUNCH_NS, _NODE_NS, _GAPS_NS = (5_000, 10_000), (0.0, 1_500.0), ((0, 500), (1_500, 1 << 40))
_PAGEABLE = re.compile(r"Memcpy HtoD \(Pageable -> .*", re.DOTALL)
# Of the time of a copy from pageable memory, one from pinned memory takes: at best, and at worst.
_PINNED = (0.1, 0.9)
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


@dataclass(frozen=True)
class Change:
    """One change: what it is called, what it does to a window at best and at worst, and what would make it less.

    `host_ns` is what the host needs for a step beside what is left of its work, at best and at worst.
    """

    name: str
    removals: Callable[[Window], tuple[Removal, Removal]]
    less_if: str
    host_ns: tuple[float, float] = (0.0, 0.0)


@analysis("what_if", rank=12)
def answer(profile: Profile) -> Answer:
    """One row per change that the trace allows to replay, the largest gain first."""
    trace, mean = profile.trace, profile.means["wall"]
    if mean is None:
        return _untold("Cannot be told: the wall time is unknown.")
    if trace.census.any(lambda roles: roles.communication):
        return _untold("Cannot be told: the collectives wait for other ranks, of which this trace knows nothing.")
    replayed = windows(trace, profile.counted)
    if not replayed:
        why = "no step has work on a GPU whose launches are known" if trace.device == "gpu" else "there is no GPU"
        return _untold(f"Nothing to replay: {why}.", "absent")
    if (unexplained := max(window.unexplained for window in replayed)) > _UNEXPLAINED:
        return _untold(
            f"Cannot be told: {percent(unexplained)} of the steps that were replayed are GPU work that starts late "
            "without a cause in this recording."
        )
    rows = [_row(change, replayed, mean.step_ns) for change in changes(profile, replayed)]
    rows.sort(key=lambda row: row["best_ns"])
    columns = {name: [row[name] for row in rows] for name in SUMMARY.names}
    columns["if"] = [in_words(profile, change) for change in columns["if"]]
    gain = max((row["gain"] for row in rows), default=0.0)
    return Answer("what_if", _TITLE, _sentence(rows, mean.step_ns), table(SUMMARY, columns), worth=gain)


def _untold(sentence: str, status: Status = "unanswered") -> Answer:
    return Answer("what_if", _TITLE, sentence, SUMMARY.empty_table(), worth=0.0, status=status)


def changes(profile: Profile, replayed: list[Window]) -> Iterator[Change]:
    """The changes that these windows of the profile allow to replay."""
    trace = profile.trace
    waits = sum(len(_syncs(window)) for window in replayed) / sum(window.last - window.first for window in replayed)
    if waits >= _OFTEN:
        yield Change(
            f"the {many(waits, 'wait')} for the GPU went",
            lambda window: _both(Removal(returns=_syncs(window))),
            "Python needs the values that it waits for",
        )
    loading = np.zeros(len(CODES) + 1, bool)
    loading[CODES["dataload"]] = True
    if profile.means["host"] is not None and profile.means["host"].parts.get("dataload"):
        yield Change(
            "batches were always ready",
            lambda window: (
                Removal(host=window.host_time(loading)),
                Removal(host=window.host_time(loading), host_factor=_LOADER_FACTOR),
            ),
            "the loader's workers take cores from the training",
        )
    if any(len(_pageable(window)) for window in replayed):
        yield Change("copies came from pinned memory", _pinned, "the copies are needed at once")
    if not (trace.census.any(lambda roles: roles.graph_launch) or waits):
        yield from _as_a_graph(profile, replayed, loading)
    yield Change(
        "half of the launches went (fused kernels)",
        lambda window: _both(_half_of_submitting(window)),
        "kernels cannot be fused",
    )
    if (label := _costliest_class(replayed)) is not None:
        yield Change(
            f"{label} kernels took half as long",
            lambda window: _both(Removal(device=_halved(window, label))),
            "their inputs come from memory that is as slow as before",
        )


def _both(removal: Removal) -> tuple[Removal, Removal]:
    return removal, removal


def _syncs(window: Window) -> Ints:
    """The calls of the window that wait for the GPU."""
    trace = window.trace
    rows = np.arange(*np.searchsorted(trace.ts_ns, (window.low, window.high)))
    part = trace.events_at(rows)
    calls = rows[part.roles.runtime & part.process & part.lasting]
    calls = calls[is_sync(trace, calls)]
    return np.setdiff1d(calls, own_waits(trace, calls))


def _pageable(window: Window) -> Ints:
    """Indices of the window's activities that copy from pageable memory."""
    activities = window.run.nodes.row[window.run.activities]
    return np.flatnonzero(window.trace.events_at(activities).roles.named(_PAGEABLE))


def _pinned(window: Window) -> tuple[Removal, Removal]:
    nodes, copies = window.run.nodes, _pageable(window)
    durations = (nodes.end - nodes.start)[window.run.activities]
    calls = nodes.launch[window.run.activities][copies]
    returns = nodes.row[calls[calls >= 0]]

    def removal(factor: float) -> Removal:
        shorter = np.zeros(len(durations), np.int64)
        shorter[copies] = (durations[copies] * (1 - factor)).astype(np.int64)
        return Removal(device=shorter, returns=returns)

    best, worst = map(removal, _PINNED)
    return best, worst


def _as_a_graph(profile: Profile, replayed: list[Window], loading: Bools) -> Iterator[Change]:
    """A step's kernels as one CUDA graph, if each step has the same ones, and nothing waits for them."""
    kernels = {tuple(names) for window in replayed for names in _names_by_step(window)}
    if len(kernels) != 1 or not (number := len(next(iter(kernels)))):
        return
    rest = ~loading
    rest[-1] = False

    def removal(gaps: tuple[int, int]) -> Callable[[Window], Removal]:
        return lambda window: Removal(host=window.host_time(rest), gap_ns=gaps)

    yield Change(
        f"the {many(number, 'kernel')} of a step were one CUDA graph",
        lambda window: (removal(_GAPS_NS[0])(window), removal(_GAPS_NS[1])(window)),
        "inputs have to be copied into the graph's own memory",
        (_LAUNCH_NS[0] + _NODE_NS[0] * number, _LAUNCH_NS[1] + _NODE_NS[1] * number),
    )


def _names_by_step(window: Window) -> Iterator[list[int]]:
    """The kernels that each step of the window launches, by name, in the order in which they run."""
    trace, nodes = window.trace, window.run.nodes
    active = np.flatnonzero(window.run.activities & (nodes.launch >= 0))
    step = trace.steps.of(nodes.start[nodes.launch[active]])
    names = trace.name_codes[nodes.row[active]]
    for number in range(window.first, window.last):
        yield names[step == number].tolist()


def _half_of_submitting(window: Window) -> Removal:
    """The first half of each time in which the host dispatches or launches, unless it is too long for that."""
    submitting = np.zeros(len(CODES) + 1, bool)
    submitting[[CODES["dispatch"], CODES["kernel_launch"]]] = True
    starts, ends = window.host_moments(submitting)
    usual = (ends - starts > 1) & (ends - starts < _STRETCH_NS)
    return Removal(host=Union(starts[usual], (starts + ends)[usual] // 2))


def _classes(window: Window) -> list[str | None]:
    """The class of each of the window's activities; None for copies."""
    trace = window.trace
    rows = window.run.nodes.row[window.run.activities]
    kernels = trace.events_at(rows).roles.kind == KERNEL
    codes = trace.name_codes[rows].tolist()
    labels = {code: kernel_class(trace.names[code]) for code in {*codes}}
    return [labels[code] if is_kernel else None for code, is_kernel in zip(codes, kernels.tolist(), strict=True)]


def _costliest_class(replayed: list[Window]) -> str | None:
    times: dict[str, int] = {}
    for window in replayed:
        nodes = window.run.nodes
        lengths = (nodes.end - nodes.start)[window.run.activities].tolist()
        for label, ns in zip(_classes(window), lengths, strict=True):
            if label is not None:
                times[label] = times.get(label, 0) + ns
    return max(times, key=lambda label: times[label], default=None)


def _halved(window: Window, label: str) -> Ints:
    nodes = window.run.nodes
    lengths = (nodes.end - nodes.start)[window.run.activities]
    is_chosen = np.array([name == label for name in _classes(window)], bool)
    return np.where(is_chosen, lengths - lengths // _TWICE, 0)


def _row(change: Change, replayed: list[Window], step_ns: float) -> dict[str, Any]:
    ranges = [window.range(*change.removals(window)) for window in replayed]
    slack = max(_LEAST, *(window.unexplained for window in replayed)) * step_ns
    best = max(step_ns - max(saved.best_ns for saved in ranges), change.host_ns[0])
    worst = max(step_ns - min(saved.worst_ns for saved in ranges), change.host_ns[1], best)
    gain = 1 - best / step_ns
    return {
        "if": change.name,
        "best_ns": min(max(best - slack, change.host_ns[0], 0.0), step_ns),
        "worst_ns": min(worst + slack, step_ns),
        "gain": gain if gain >= _LEAST else 0.0,
        "then": _THEN[max(ranges, key=lambda saved: saved.best_ns).bound],
        "less_if": change.less_if,
        "step": replayed[0].trace.steps.number[replayed[0].first],
    }


def _sentence(rows: list[dict[str, Any]], step_ns: float) -> str:
    if not rows:
        return "Nothing that could be different was found."
    # That kernels become faster is no change that one makes: it is told where nothing else helps.
    first = next((row for row in rows if row["gain"] and "took half as long" not in row["if"]), rows[0])
    gain, best = first["gain"], first["best_ns"]
    if not gain:
        return f"No gain is expected of any change that was replayed: {first['then']} would still decide a step's time."
    return (
        f"If {first['if']}: at best {duration(step_ns)} → {duration(best)} a step (−{percent(gain)}). Less if "
        f"{first['less_if']}."
    )
