"""For the kernels of one step, what was recorded besides times: shapes and types of inputs, how full the GPU was."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tracekit.engine import Attribution
from tracekit.intervals import Bools, Ints
from tracekit.lines.ownership import Ownership
from tracekit.trace.rereading.arguments import Arguments, arguments
from tracekit.trace.steps import in_steps

_MOST = 20_000  # kernels; if a step has more, only the longest


@dataclass(frozen=True)
class Sample:
    """The GPU activities that one step launches, in order of their starts."""

    kernels: Ints  # rows
    operators: Ints  # for each, the row of the operator that launched it; −1 for none
    known: dict[int, Arguments] = field(default_factory=dict)  # by row, of both

    @cached_property
    def occupancy(self) -> NDArray[np.float64]:
        """For each kernel, the share of the GPU's warps that it keeps occupied, as estimated.

        NaN where that is not a share: some versions of the profiler wrote other numbers.
        """
        shares = self._figures(lambda kernel: kernel.occupancy)
        return np.where((shares >= 0) & (shares <= 1), shares, np.nan)

    @cached_property
    def blocks_per_sm(self) -> NDArray[np.float64]:
        """For each kernel, how many blocks each multiprocessor gets; NaN where it was not recorded."""
        return self._figures(lambda kernel: kernel.blocks_per_sm)

    def _figures(self, figure: Callable[[Arguments], float | None]) -> NDArray[np.float64]:
        known = map(self.known.get, self.kernels.tolist())
        return np.array([figure(each) if each is not None else None for each in known], np.float64)


def sample(attribution: Attribution, counted: Bools, ownership: Ownership) -> Sample:
    """The kernels of the first counted step that launches any.

    An operator without shapes in the trace gets those of the operator it was matched with in the recording with stacks,
    which a capture puts beside the trace.
    """
    trace = attribution.trace
    step = trace.steps.of(trace.ts_ns[trace.links.launches])
    launching = np.unique(step[in_steps(counted, step)])
    if not len(launching):
        return Sample(np.zeros(0, np.int64), np.zeros(0, np.int64))
    inside = step == launching[0]
    rows, launches = trace.links.activities[inside], trace.links.launches[inside]
    if len(rows) > _MOST:
        longest = np.sort(np.argsort(-trace.dur_ns[rows], kind="stable")[:_MOST])
        rows, launches = rows[longest], launches[longest]
    kernels, operators = rows.astype(np.int64), trace.operators.of(launches)
    asked = np.unique(operators[operators >= 0])
    known = arguments(trace, np.concatenate((kernels, asked)))
    without = np.array([row for row in asked.tolist() if row not in known or known[row].inputs is None], np.int64)
    if len(without) and ownership.detail is not None and ownership.recording is not None:
        matched = ownership.rows_in_recording(without)
        theirs = arguments(ownership.recording.trace, matched[matched >= 0])
        known |= {
            ours: theirs[row] for ours, row in zip(without.tolist(), matched.tolist(), strict=True) if row in theirs
        }
    return Sample(kernels, operators, known)
