"""Where a training step's wall time goes, to the nanosecond.

`tracekit.load(path)` opens a run or a trace in a notebook, and `with tracekit.record(path):` records one there.
`tracekit.trace_handler(folder)` makes a run of what torch.profiler records in a training.
`tracekit.watch(folder)` watches a training from inside its loop, for as long as it runs.
`tracekit.step()` marks the end of a step in code that has no optimizer to mark it.
`tracekit.Trace` and `tracekit.attribute` are the building blocks.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tracekit.capture.recording import record
    from tracekit.engine import Attribution, attribute
    from tracekit.integrations.handler import trace_handler
    from tracekit.notebook import Tables, load
    from tracekit.trace import Trace
    from tracekit.vocabulary.step_marks import step
    from tracekit.watching import watch

__all__ = ["Attribution", "Tables", "Trace", "attribute", "load", "record", "step", "trace_handler", "watch"]

_HOMES = {
    "Attribution": "tracekit.engine",
    "Tables": "tracekit.notebook",
    "Trace": "tracekit.trace",
    "attribute": "tracekit.engine",
    "load": "tracekit.notebook",
    "record": "tracekit.capture.recording",
    "step": "tracekit.vocabulary.step_marks",
    "trace_handler": "tracekit.integrations.handler",
    "watch": "tracekit.watching",
}


def __getattr__(name: str) -> Any:
    # Imported at first use: `tracekit --help` and a capture on a bare machine must not pay for pyarrow.
    from importlib import import_module

    if name in _HOMES:
        from tracekit.base.deprecation import warn

        warn(f"python: tracekit.{name}")
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'tracekit' has no attribute {name!r}")
