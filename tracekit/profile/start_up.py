"""Which of the first steps are longer than the others only because something starts up in them, and what is used there
for the first time? Such a step says nothing about the pace of training: means leave it out, as they do steps that
compile.
"""

import re
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from tracekit.base.intervals import Bools, Ints
from tracekit.base.units import duration
from tracekit.engine import Attribution
from tracekit.engine.buckets import SLOW_HOST
from tracekit.trace import Trace
from tracekit.trace.roles import OPERATOR, PYTHON

if TYPE_CHECKING:
    from tracekit.profile.profile import Profile


_LIBRARIES = {
    "cuBLAS": r"aten::(?:linear|matmul|addmm|mm|bmm|baddbmm|addbmm|addmv|mv|dot|_scaled_mm)",
    "cuDNN": r"aten::(?:_?cudnn_|miopen_|_?convolution|conv\dd).*",
    "NCCL": r"nccl:.*|c10d::.*|record_param_comms",
    "cuSOLVER": r"aten::_?(?:linalg_|cholesky).*",
    "cuFFT": r"aten::_?fft_.*",
    "cuSPARSE": r"aten::_?sparse_.*",
}
_LONGER = 1.1  # than the median of the steps after it
_ODD = 20  # times the median of its name: a first call that takes less than that is an ordinary call
_EXPLAINED = 0.5  # of what a step takes longer
_MIN_SHARE_TO_REPORT = 0.1  # of it: causes with less are not named
_LEAST_NS = 10_000


class FirstUses(Struct, frozen=True, dict=True):
    """The first uses in a trace."""

    trace: Trace

    def of(self, rows: Ints) -> Bools:
        """Which of these events on the host are first calls, or part of a library's start."""
        trace = self.trace
        if not self.from_the_start:
            return np.zeros(len(rows), bool)
        first: Bools = self._first_of_name[trace.name_codes[rows]] == rows
        first |= np.isin(rows, self._launches)
        calls = trace.events_at(rows)
        is_runtime = calls.roles.runtime.copy()
        for started in self._library_starts:
            begun, ended = trace.ts_ns[started], trace.ts_ns[started] + trace.dur_ns[started]
            of_it = is_runtime & (calls.track == trace.track[started])
            first |= of_it & (calls.ts_ns >= begun) & (calls.end_ns <= ended)
        return first

    @property
    def from_the_start(self) -> bool:
        """Whether nothing says that other steps came before the recording."""
        return not self.trace.steps.annotated or min(self.trace.steps.number, default=0) == 0

    @cached_property
    def _first_of_name(self) -> Ints:
        """For each name the row of its first event on the host; −1 for none."""
        trace = self.trace
        rows = np.full(len(trace.names), -1, np.int64)
        host = trace.where(lambda part: part.roles.host & part.process)
        names, first = np.unique(trace.name_codes[host], return_index=True)
        rows[names] = host[first]
        return rows

    @cached_property
    def _launches(self) -> Ints:
        """The calls that launched a kernel of a name that had not run before."""
        trace = self.trace
        activities = trace.where(lambda part: part.roles.gpu)
        first = activities[np.unique(trace.name_codes[activities], return_index=True)[1]]
        return trace.links.launch(np.sort(first))

    @cached_property
    def _library_starts(self) -> list[int]:
        """The first operator that needs each of the libraries; of nested ones, the outermost."""
        trace, starts = self.trace, []
        for pattern in map(re.compile, _LIBRARIES.values()):
            needs_library = trace.labels.fits(pattern)
            if needs_library.any():
                rows = trace.where(lambda part: (part.roles.kind == OPERATOR) & needs_library[part.name_codes])  # noqa: B023
                together = rows[trace.ts_ns[rows] == trace.ts_ns[rows[:1]]]
                starts += together[np.argsort(-trace.dur_ns[together], kind="stable")][:1].tolist()
        return starts


class ColdStep(Struct, frozen=True):
    """A step in which something starts up: its index, how long it lasts, ns, and what takes how much of it."""

    index: int
    step_ns: int
    parts: dict[str, int]

    @property
    def largest_part(self) -> str:
        """The cause that takes most of the step."""
        return max(self.parts, key=lambda cause: self.parts[cause])

    def in_words(self, number: int) -> str:
        """`step 3, 43.1 ms (4.35 ms of code loading, once)`."""
        total = sum(self.parts.values())
        large = [(cause, ns) for cause, ns in self.parts.items() if ns >= _MIN_SHARE_TO_REPORT * total]
        listed = ", ".join(f"{duration(ns)} of {cause}" for cause, ns in sorted(large, key=lambda part: -part[1]))
        return f"step {number}, {duration(self.step_ns)} ({listed}, once)"


def cold_steps_sentence(profile: "Profile") -> str:
    """The cold steps of a profile as one clause; empty where there are none."""
    return "; ".join(step.in_words(profile.trace.steps.number[step.index]) for step in profile.cold_steps)


def may_be_cold(attribution: Attribution) -> bool:
    """Whether the first step that could be is longer than those after it."""
    view = attribution.answered_view
    lasting = view.step_ns[view.known & ~attribution.compiles]
    return len(lasting) > 1 and bool(lasting[0] > _LONGER * np.median(lasting[1:]))


def cold_steps(attribution: Attribution) -> list[ColdStep]:
    """The leading steps that start-up makes longer than those after them, in order; the last step is none."""
    view = attribution.answered_view
    steps = np.flatnonzero(view.known & ~attribution.compiles)
    cold = []
    for position, index in enumerate(steps[:-1].tolist()):
        usual = float(np.median(view.step_ns[steps[position + 1 :]]))
        lasts = int(view.step_ns[index])
        if lasts <= _LONGER * usual:
            break
        parts = _start_up(attribution, index, steps[position + 1 :])
        if sum(parts.values()) < _EXPLAINED * (lasts - usual):
            break
        cold.append(ColdStep(index, lasts, parts))
    return cold


def _start_up(attribution: Attribution, index: int, later: Ints) -> dict[str, int]:
    """What happens in a step only because it is the first, ns by what it is."""
    view, pieces, uses = attribution.answered_view, attribution.pieces, FirstUses(attribution.trace)
    parts = {"code loading": _excess(view.totals[:, view.keys.index("module_load")], index, later)}
    if uses.from_the_start:
        in_step = (pieces.step == index) & pieces.of(*SLOW_HOST) & (pieces.event >= 0)
        calls, allocating = _first_calls(uses, pieces.event[in_step].astype(np.int64), pieces.dur[in_step])
        growing = _excess(view.totals[:, view.keys.index("alloc")], index, later) - allocating
        parts |= {"allocation": growing, **calls}
    trace = attribution.trace
    if uses.from_the_start and view.name == "wall" and not trace.coverage.is_incomplete.any():
        # Kernels that run in no later step, as when cuDNN tries its algorithms; where work was lost, nobody knows that.
        low, high = int(trace.steps.begin[index]), int(trace.steps.done[index])
        activities = trace.where(lambda part: part.roles.gpu & part.lasting)
        starts, names = trace.ts_ns[activities], trace.name_codes[activities]
        alone = (starts >= low) & (starts < high) & ~np.isin(names, names[starts >= high])
        parts["kernels that run only once"] = int(trace.dur_ns[activities[alone]].sum())
    return {cause: ns for cause, ns in parts.items() if ns >= _LEAST_NS}


def _excess(times: Ints, index: int, later: Ints) -> int:
    return max(int(times[index] - np.median(times[later])), 0)


def _first_calls(uses: FirstUses, events: Ints, dur: Ints) -> tuple[dict[str, int], int]:
    """The time of first calls that take far longer than later ones, by name; and how much of it is the allocator's.

    An operator without a later one is no first call: it may be what the first step does besides.
    """
    trace = uses.trace
    rows, inverse = np.unique(events, return_inverse=True)
    spent_ns = np.bincount(inverse, dur, minlength=len(rows)).astype(np.int64)
    roles = trace.events_at(rows).roles
    excess_ns: dict[str, int] = {}
    allocating = 0
    for k in np.flatnonzero((spent_ns >= _LEAST_NS) & (roles.kind != PYTHON) & uses.of(rows)).tolist():
        row = int(rows[k])
        alike = trace.where(lambda part: part.name_codes == trace.name_codes[row])  # noqa: B023
        other_ns = trace.dur_ns[alike[alike != row]]
        usual = float(np.median(other_ns)) if len(other_ns) else 0.0
        if spent_ns[k] >= _ODD * usual and (len(other_ns) or roles.runtime[k]):
            cause = f"the first {trace.name(row)}"
            excess_ns[cause] = excess_ns.get(cause, 0) + int(spent_ns[k] - usual)
            allocating += int(spent_ns[k] - usual) if roles.alloc[k] else 0
    return excess_ns, allocating
