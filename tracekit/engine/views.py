"""The two views of an attribution, alike in shape: a question about wall time can also be asked about the host's."""

from dataclasses import dataclass

from tracekit.intervals import Bools, Ints


@dataclass(frozen=True)
class StepView:
    """Steps by buckets: `totals` has one row per step and one column per key, int64 ns, and adds up to `step_ns`."""

    name: str
    keys: tuple[str, ...]
    totals: Ints
    known: Bools  # a step that is not known holds no answer
    starts_ns: Ints
    step_ns: Ints
    reason: str | None  # why the trace cannot answer it at all; None if it can
