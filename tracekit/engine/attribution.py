"""The sweep: every nanosecond of every step in exactly one bucket, in two views, and what cannot be answered."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tracekit.engine.buckets import CODES, HOST, KEYS, WALL
from tracekit.engine.host import HostView, host_view
from tracekit.engine.views import StepView
from tracekit.engine.wall import WallView, wall_view
from tracekit.intervals import Bools, Ints, StepFunction, Union, below, distinct, runs
from tracekit.trace import Trace
from tracekit.trace.roles import OTHER_DEVICE
from tracekit.trace.schema import LABEL, column

VERSION = 1  # of the rules; a change of any result changes it

SEGMENTS = pa.schema(
    [
        column("view", LABEL, "wall or host"),
        column("start_ns", pa.int64(), "start", "ns"),
        column("dur_ns", pa.int64(), "duration", "ns"),
        column("bucket", LABEL, "where this time counts"),
        column("event", pa.int64(), "row of the event to blame; null where none is"),
    ]
)


@dataclass(frozen=True)
class Attribution:
    """Where the time of a trace went.

    `wall` and `host` have one row per step and one column per bucket of `WALL` or `HOST`, int64 ns; a row of
    `wall_known` or `host_known` that is False holds no answer.
    """

    trace: Trace
    cannot_answer: dict[str, str]  # view → why the trace cannot answer it
    host: Ints
    wall: Ints
    host_known: Bools
    wall_known: Bools
    steady: Bools

    @cached_property
    def host_view(self) -> HostView | None:
        """What the host did, moment by moment; None where that cannot be answered."""
        return None if "host" in self.cannot_answer else host_view(self.trace)

    @cached_property
    def wall_view(self) -> WallView | None:
        """Where the wall time went, moment by moment; None where that cannot be answered."""
        if "wall" in self.cannot_answer or self.host_view is None:
            return None
        return wall_view(self.trace, self.host_view)

    @property
    def wall_ns(self) -> Ints:
        """How long each step took until its work was done."""
        return self.trace.steps.done - self.trace.steps.begin

    @property
    def host_ns(self) -> Ints:
        """How long the host took to issue each step."""
        return self.trace.steps.returned - self.trace.steps.issued

    @cached_property
    def segments(self) -> pa.Table:
        """Both views as stretches of one bucket and one event to blame, in order of time."""
        parts = [
            _segments(name, view.states, view.events)
            for name, view in (("wall", self.wall_view), ("host", self.host_view))
            if view is not None
        ]
        return pa.concat_tables(parts or [SEGMENTS.empty_table()]).unify_dictionaries().combine_chunks()

    @property
    def views(self) -> dict[str, StepView]:
        """Both views, alike in shape."""
        steps, why = self.trace.steps, self.cannot_answer.get
        wall = StepView("wall", WALL, self.wall, self.wall_known, steps.begin, self.wall_ns, why("wall"))
        host = StepView("host", HOST, self.host, self.host_known, steps.issued, self.host_ns, why("host"))
        return {"wall": wall, "host": host}


def attribute(trace: Trace) -> Attribution:
    """Put every nanosecond of every step into one bucket of each view."""
    steps = trace.steps
    cannot = {}
    if no_host := _why_no_host(trace):
        cannot["host"] = no_host
    if no_wall := no_host or _why_no_wall(trace):
        cannot["wall"] = no_wall
    host = None if no_host else host_view(trace)
    wall = None if no_wall or host is None else wall_view(trace, host)
    whole = _before_loss(trace)
    cost = Attribution(
        trace=trace,
        cannot_answer=cannot,
        host=_totals(host.states if host else None, HOST, steps.issued, steps.returned),
        wall=_totals(wall.states if wall else None, WALL, steps.begin, steps.done),
        host_known=np.full(len(steps), host is not None) & whole,
        wall_known=np.full(len(steps), wall is not None) & ~_steps_without_kernels(trace) & whole,
        steady=~_compiling(trace),
    )
    vars(cost).update(host_view=host, wall_view=wall)  # they are at hand
    return cost


def _before_loss(trace: Trace) -> Bools:
    """Of a file that was cut: the steps of which nothing can be missing."""
    steps, lost_from = trace.steps, trace.lost_from_ns
    if lost_from is None:
        return np.ones(len(steps), bool)
    whole = (np.maximum(steps.done, steps.returned) <= lost_from) & (steps.until <= lost_from)
    launches = trace.roles.launch & trace.threads.process & (trace.links.activities == 0)
    unanswered = steps.of(trace.ts_ns[launches])  # what they submitted may be what is missing
    if trace.roles.gpu.any():
        whole[unanswered[unanswered >= 0]] = False
    return np.logical_and.accumulate(whole)


def _why_no_host(trace: Trace) -> str | None:
    if trace.threads.main is None:
        return "the trace holds no host events: was CPU activity recorded?"
    if len(trace.steps) and not _before_loss(trace).any():
        return f"the file was cut ({trace.cut_short}), and what is missing may belong to any of its steps"
    if not len(trace.steps) or not (trace.end_ns > trace.ts_ns)[trace.threads.process | trace.roles.gpu].any():
        return "nothing in the trace lasts: every event has a duration of 0"
    return None


def _why_no_wall(trace: Trace) -> str | None:
    roles = trace.roles
    launching = {
        trace.tracks["pid"][int(track)].as_py() for track in np.flatnonzero(np.bincount(trace.track[roles.launch]))
    }
    if len(launching) > 1:
        return (
            f"{len(launching)} processes launch work in this file: a merge of ranks. Give each rank's trace by itself"
        )
    if not roles.gpu.any():
        if launching:
            return "the host launched GPU work, and the trace holds no GPU activity: was the GPU side recorded?"
        if (roles.kind == OTHER_DEVICE).any():
            return "the work ran on a device whose activity is not in the terms of CUDA or ROCm"
        return None
    if not (_launched_in(trace) >= 0).any():
        return "no GPU activity was launched inside a step by the process whose steps these are"
    return None


def _launched_in(trace: Trace) -> Ints:
    """For each linked GPU activity the step in whose time its launch starts, −1 for none."""
    launch = trace.links.launch
    return trace.steps.of(trace.ts_ns[launch[launch >= 0]])


def _steps_without_kernels(trace: Trace) -> Bools:
    """Steps that launched work of which the trace, although it has a GPU side, shows nothing."""
    missing = np.zeros(len(trace.steps), bool)
    if not trace.roles.gpu.any() or not len(missing):
        return missing
    calls = trace.steps.of(trace.ts_ns[trace.roles.launch & trace.threads.process])
    missing[calls[calls >= 0]] = True
    shown = _launched_in(trace)
    missing[shown[shown >= 0]] = False
    return missing


def _compiling(trace: Trace) -> Bools:
    """Steps in which a driving thread compiles, while they are issued or while their work is under way."""
    spans = trace.roles.compile_span & trace.threads.process & np.isin(trace.track, trace.threads.driving)
    union = Union.of(trace.ts_ns[spans], trace.end_ns[spans])
    steps = trace.steps
    return (union.within(steps.issued, steps.returned) > 0) | (union.within(steps.begin, steps.done) > 0)


def _totals(states: StepFunction | None, keys: tuple[str, ...], lows: Ints, highs: Ints) -> Ints:
    """The time in each bucket inside each `[low, high)`: what it comes to before `high`, less what before `low`."""
    if states is None or not len(states.values) or not len(lows):
        return np.zeros((len(lows), len(keys)), np.int64)
    bounds = distinct(np.concatenate((lows, highs)))
    starts, width = states.edges[:-1], len(CODES) + 1
    spent = np.zeros((len(bounds) + 1) * width, np.int64)
    np.add.at(spent, below(bounds, starts) * width + states.values, np.diff(states.edges))
    before = np.cumsum(spent.reshape(-1, width), axis=0)[:-1]
    last = np.searchsorted(starts, bounds, side="left") - 1  # begins before the bound, and may end after it
    over = np.where(last >= 0, np.maximum(states.edges[last + 1] - bounds, 0), 0)
    before[np.arange(len(bounds)), states.values[last]] -= over
    whole = before[:, [CODES[key] for key in keys]]
    totals: Ints = whole[np.searchsorted(bounds, highs)] - whole[np.searchsorted(bounds, lows)]
    return totals


def _segments(view: str, states: StepFunction, events: StepFunction) -> pa.Table:
    at: Ints = events.at(states.edges[:-1]) if events.edges is not states.edges else np.asarray(events.values, np.int64)
    bounds = runs(states.values.astype(np.int64) * (1 << 40) + at)
    starts = states.edges[bounds]
    codes: NDArray[np.int32] = states.values[bounds[:-1]].astype(np.int32)
    blamed = at[bounds[:-1]]
    count = len(codes)
    return pa.Table.from_arrays(
        [
            pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int32)), [view]),
            pa.array(starts[:-1]),
            pa.array(np.diff(starts)),
            pa.DictionaryArray.from_arrays(pa.array(codes), list(KEYS)),
            pa.array(blamed, mask=blamed < 0),
        ],
        schema=SEGMENTS,
    )
