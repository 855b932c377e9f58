"""HTA's `TraceAnalysis` with its trace given, and HTA's comparison of two traces."""

from typing import Any

import pandas as pd
from hta.trace_analysis import TraceAnalysis
from hta.trace_diff import TraceDiff

from tracekit.hta.traces import ColumnTrace


class ColumnAnalysis(TraceAnalysis):  # type: ignore[misc]  # HTA has no types
    """Everything in HTA's own class, on columns that were already read. Times are µs; `t` is HTA's Trace."""

    def __init__(self, trace: ColumnTrace) -> None:
        self.t = trace

    @property
    def ranks(self) -> list[int]:
        """The ranks, the lowest first; many analyses take some of them, by default rank 0."""
        ranks: list[int] = self.t.get_ranks()
        return ranks

    def compare_traces(self, test: "ColumnAnalysis", **how: Any) -> pd.DataFrame:
        """HTA's `TraceDiff`: operators and kernels of this trace (the control) compared with those of another."""
        diff: pd.DataFrame = TraceDiff.compare_traces(self.t, test.t, **how)
        return diff
