"""How GPU time divides, for HTA's questions but computed exactly, and by the profiler's kind of each event."""

from dataclasses import dataclass

from tracekit.hta.frames import is_event_of_hta
from tracekit.intervals import Bools, Union
from tracekit.trace import Trace
from tracekit.trace.columns import values
from tracekit.trace.roles import KERNEL


@dataclass(frozen=True)
class GpuTime:
    """The GPU time of one trace, from the first GPU activity to the end of the last, ns."""

    span_ns: int
    compute_ns: int  # kernels other than communication
    busy_ns: int
    communication_ns: int
    hidden_ns: int  # communication while those kernels run

    @property
    def idle_ns(self) -> int:
        """The time in which nothing runs."""
        return self.span_ns - self.busy_ns

    @property
    def overlap(self) -> float | None:
        """The share of communication that computation overlaps; None without communication."""
        return self.hidden_ns / self.communication_ns if self.communication_ns else None


def gpu_time(trace: Trace) -> GpuTime:
    """The GPU time of all GPU activities of a trace, whatever step they belong to."""
    roles = trace.roles
    if not roles.gpu.any():
        return GpuTime(0, 0, 0, 0, 0)

    def union(mask: Bools) -> Union:
        return Union.of(trace.ts_ns[mask], trace.end_ns[mask])

    compute = union((roles.kind == KERNEL) & ~roles.communication)
    communication = union(roles.communication)
    return GpuTime(
        span_ns=int(trace.end_ns[roles.gpu].max() - trace.ts_ns[roles.gpu].min()),
        compute_ns=compute.total(),
        busy_ns=union(roles.gpu).total(),
        communication_ns=communication.total(),
        hidden_ns=communication.total() - communication.minus(compute).total(),
    )


def taken_for_kernels(trace: Trace) -> tuple[int, int]:
    """Events with a stream that are not GPU activities, which HTA counts as kernels: their number and duration, ns."""
    others = (values(trace.events["stream"], null=-1) >= 0) & ~trace.roles.gpu & is_event_of_hta(trace)
    return int(others.sum()), int(trace.dur_ns[others].sum())
