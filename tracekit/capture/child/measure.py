"""Pass A: how long a step takes when nobody looks. The number to quote."""

import gc
import sys

from tracekit.capture.child import timing
from tracekit.capture.child.recipe import Feed
from tracekit.capture.compiler.compile_log import CompileRecorder
from tracekit.capture.compiler.ledger import total_ns
from tracekit.capture.job import Answer, Job
from tracekit.run import Measured, Memory

FIRST_STEPS = 3


def measure(job: Job, recorder: CompileRecorder) -> timing.Steps[Answer]:
    """The first steps one by one, warm-up, then steps timed without a wait between them."""
    first = []
    for _ in range(FIRST_STEPS):
        first.append((yield from timing.time_one(job.device)))
    warmup = FIRST_STEPS + (yield from timing.settle(recorder, job.warmup - FIRST_STEPS))
    gc.collect()  # what compiling left behind would be collected inside a timed step
    _forget_peaks(job.device)
    settled = len(recorder.compiled)
    times = yield from timing.time_many(job.device, timing.ONE_OF_SEVERAL if job.round else timing.ALONE)
    memory = peaks(job.device)
    compiled = [*recorder.compiled]
    measured = Measured(
        step_ns=timing.median_ns(times),
        step_all_ns=times,
        spread_ns=timing.spread_ns(times),
        first_steps_ns=first,
        warmup_steps=warmup,
        compile_ns=total_ns(compiled),
        compiles=len(compiled),
        compiles_timed=len(compiled) - settled,
        clock=timing.clock(job.device),
    )
    return Answer(measured=measured, memory=memory)


def infer_ns(feed: Feed, job: Job, recorder: CompileRecorder) -> int | None:
    """Median ns of the recipe's inference, where it has one."""
    if feed.infer is None:
        return None
    timing.drive(timing.settle(recorder, FIRST_STEPS), feed.infer)
    return timing.median_ns(timing.drive(timing.time_many(job.device), feed.infer))


def _forget_peaks(device: str) -> None:
    if device.startswith("cuda"):
        import torch

        torch.cuda.reset_peak_memory_stats(device)


def peaks(device: str) -> Memory:
    """The most memory this process has held since it was last asked to forget, bytes."""
    if not device.startswith("cuda"):
        return Memory(host_peak_rss_bytes=_host_peak())
    import torch

    return Memory(
        peak_allocated_bytes=torch.cuda.max_memory_allocated(device),
        peak_reserved_bytes=torch.cuda.max_memory_reserved(device),
        host_peak_rss_bytes=_host_peak(),
    )


def _host_peak() -> int | None:
    """Bytes; of the whole process, compilation included."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
