"""Runs: what `tracekit capture` writes, and everything else reads."""

from tracekit.run.file import is_run, now, read, stamp, write
from tracekit.run.graph_sizes import GraphSize, GraphSizes
from tracekit.run.ledger import Break, Compile, Ledger, Limit, Skip
from tracekit.run.losses import divergence, loss_tolerance
from tracekit.run.machine_load import crowding, was_busy
from tracekit.run.model import (
    SCHEMA,
    WINDOWS,
    Effective,
    Measured,
    Memory,
    Outcome,
    Pass,
    Profiled,
    RankTraces,
    Requested,
    Run,
    Traces,
    Turn,
    Variant,
    Window,
    Workload,
)
from tracekit.run.training import Training

__all__ = [
    "SCHEMA",
    "WINDOWS",
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
    "RankTraces",
    "Requested",
    "Run",
    "Skip",
    "Traces",
    "Training",
    "Turn",
    "Variant",
    "Window",
    "Workload",
    "crowding",
    "divergence",
    "is_run",
    "loss_tolerance",
    "now",
    "read",
    "stamp",
    "was_busy",
    "write",
]
