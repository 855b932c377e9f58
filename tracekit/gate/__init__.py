"""Does a run keep its budget, or what an earlier run reached? For a pull request: rows, each with its outcome.

    Subject ──metrics──▶ readings ──within() or against()──▶ rows ──drawing──▶ text, Markdown, JSON, JUnit

A metric is one entry of `metrics.METRICS`. Time is uncertain: a limit is broken only where the whole interval of a
reading lies beyond it. What cannot be answered has an outcome of its own, and fails unless it is allowed.
"""

from tracekit.gate.against import against
from tracekit.gate.budget import Budget, read_budget
from tracekit.gate.differences import differences
from tracekit.gate.rows import Check, Row, failed
from tracekit.gate.within import within

__all__ = ["Budget", "Check", "Row", "against", "differences", "failed", "read_budget", "within"]
