"""Does a run stay within its budget, or keep up with an earlier run? The result is rows, each with its outcome.

    Subject ──metrics──▶ readings ──within() or against()──▶ rows ──drawing──▶ text, Markdown, JSON, JUnit

A metric is one entry of `metrics.METRICS`. Because times are uncertain, a limit is exceeded only if the whole interval
of a reading lies beyond it. Every check says which regression it could have seen
(`tracekit.statistics.uncertainty`); one that its data would have hidden is no pass. What cannot be answered has an
outcome of its own, and fails unless it is allowed.
"""

from tracekit.gate.limits import Budget, against, differences, read_budget, within
from tracekit.gate.rows import Check, Demand, Row, failed

__all__ = ["Budget", "Check", "Demand", "Row", "against", "differences", "failed", "read_budget", "within"]
