"""Runs: what `tracekit capture` writes, and everything else reads."""

from tracekit.run.file import is_run, now, read, stamp, write
from tracekit.run.graph_sizes import GraphSize, GraphSizes
from tracekit.run.ledger import Break, Compile, Ledger, Limit, Skip
from tracekit.run.losses import divergence, loss_tolerance
from tracekit.run.model import (
    SCHEMA,
    Effective,
    Measured,
    Memory,
    Outcome,
    Pass,
    Profiled,
    Requested,
    Run,
    Traces,
    Variant,
    Which,
    Workload,
)

__all__ = [
    "SCHEMA",
    "Break",
    "Compile",
    "Effective",
    "GraphSize",
    "GraphSizes",
    "Ledger",
    "Limit",
    "Measured",
    "Memory",
    "Outcome",
    "Pass",
    "Profiled",
    "Requested",
    "Run",
    "Skip",
    "Traces",
    "Variant",
    "Which",
    "Workload",
    "divergence",
    "is_run",
    "loss_tolerance",
    "now",
    "read",
    "stamp",
    "write",
]
