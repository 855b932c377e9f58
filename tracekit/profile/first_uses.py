"""Which events on the host start something up, and therefore happen once?

A first call is the first of its name, a launch that runs a kernel for the first time, or a call of the runtime under
the first operator that needs a library: that is where cuBLAS, cuDNN and NCCL initialise. Being slow makes no call the
first, nor does being the first in a recording that begins after other steps.
"""

import re
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tracekit.intervals import Bools, Ints
from tracekit.trace import Trace
from tracekit.trace.roles import OPERATOR

_LIBRARIES = {
    "cuBLAS": r"aten::(?:linear|matmul|addmm|mm|bmm|baddbmm|addbmm|addmv|mv|dot|_scaled_mm)",
    "cuDNN": r"aten::(?:_?cudnn_|miopen_|_?convolution|conv\dd).*",
    "NCCL": r"nccl:.*|c10d::.*|record_param_comms",
    "cuSOLVER": r"aten::_?(?:linalg_|cholesky).*",
    "cuFFT": r"aten::_?fft_.*",
    "cuSPARSE": r"aten::_?sparse_.*",
}


@dataclass(frozen=True)
class FirstUses:
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
        inside = calls.roles.runtime.copy()
        for started in self._library_starts:
            begun, ended = trace.ts_ns[started], trace.ts_ns[started] + trace.dur_ns[started]
            of_it = inside & (calls.track == trace.track[started])
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
            named = trace.labels.fits(pattern)
            if named.any():
                rows = trace.where(lambda part: (part.roles.kind == OPERATOR) & named[part.name_codes])  # noqa: B023
                together = rows[trace.ts_ns[rows] == trace.ts_ns[rows[:1]]]
                starts += together[np.argsort(-trace.dur_ns[together], kind="stable")][:1].tolist()
        return starts
