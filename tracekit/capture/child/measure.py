"""Stage `measure`: how long a step takes when nothing observes it, and what compiling costs.

It also tells at which clocks: they are queried while more steps run, because an idle GPU lowers them.
"""

import gc
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from msgspec.structs import replace

from tracekit.capture import environment
from tracekit.capture.child import timing
from tracekit.capture.child.clocks import stopwatch
from tracekit.capture.child.graph_log import GraphLog
from tracekit.capture.child.memory import MemoryMeter
from tracekit.capture.child.recipe import RecipeStep
from tracekit.capture.compiler import CompileRecorder
from tracekit.capture.device import gpu, is_gpu, synchronize, uuid
from tracekit.capture.job import Job, PassResult, store_so_far
from tracekit.compile_log.ledger import total_ns
from tracekit.statistics.typical_step import typical_step

FIRST_STEPS = 3
_RAMP_NS = 500_000_000
_LONGEST_QUERY_S = 5.0  # nvidia-smi answers within some 50 ms, or seconds if it first has to load the driver


def measure(job: Job, recorder: CompileRecorder, graphs: GraphLog) -> timing.Steps[PassResult]:
    """Time the first steps one by one, warm up, then time steps without a wait between them."""
    stopwatch.enter("warm up")
    memory, first = MemoryMeter(job.device), []
    before_ns = total_ns([*recorder.compiled])  # of an evaluation, say
    for _ in range(FIRST_STEPS):
        first.append((yield from timing.time_one(job.device)))
    warmup = FIRST_STEPS + (yield from timing.settle(recorder, job.warmup - FIRST_STEPS, at_least_ns=ramp_ns(job)))
    gc.collect()  # otherwise, garbage from compiling would be collected inside a timed step
    warmup += yield from memory.forget_peaks()
    settled = len(recorder.compiled)
    stopwatch.enter("steps")
    times = yield from timing.time_many(job.device, length(job), job.period)
    stopwatch.enter("end")
    peaks = memory.peaks(len(times))
    compiled = [*recorder.compiled]
    measured = timing.measured(
        job.device,
        times,
        first_steps_ns=first,
        warmup_steps=warmup,
        compile_ns=total_ns(compiled),
        compile_before_ns=before_ns,
        compiles=len(compiled),
        compiles_timed=len(compiled) - settled,
    )
    result = PassResult(measured=measured, memory=peaks, graphs=graphs.last(len(times)))
    store_so_far(job, result)
    if job.round:
        return result
    try:
        return replace(result, gpu=(yield from sample(job.device)))
    except timing.EndedError:  # a script's last step was a timed one
        return result


def length(job: Job) -> timing.TimingBudget:
    """How many steps the pass times."""
    return timing.ONE_OF_SEVERAL if job.round else timing.ALONE


def infer_ns(feed: RecipeStep, job: Job, recorder: CompileRecorder) -> int | None:
    """The median duration of the recipe's inference, ns, if it has one."""
    if feed.infer is None:
        return None
    timing.run_steps(timing.settle(recorder, FIRST_STEPS), feed.infer)
    return typical_step(timing.run_steps(timing.time_many(job.device, timing.ONE_OF_SEVERAL), feed.infer)).step_ns


def ramp_ns(job: Job) -> int:
    """How long to let an idle GPU raise its clocks; less in a script, whose steps are limited."""
    return _RAMP_NS if is_gpu(job.device) and not job.is_script else 0


def sample(device: str) -> timing.Steps[dict[str, Any]]:
    """Take steps until nvidia-smi has answered; empty without a GPU, or if it does not answer."""
    if not is_gpu(device):
        return {}
    with ThreadPoolExecutor(1) as pool:
        query = pool.submit(_state, uuid(gpu().get_device_properties(device)))
        deadline_s = time.monotonic() + _LONGEST_QUERY_S
        while timing.agreed(not query.done() and time.monotonic() < deadline_s):
            yield
        synchronize(device)
        return query.result()


def _state(name: str | None) -> dict[str, Any]:
    """What nvidia-smi says of the GPU while it works, and of those that share it."""
    rows = environment.under_load(name)
    processes = environment.processes_on(name) if name is not None else None
    state: dict[str, Any] = {}
    if rows:
        state = {field: value for field, value in rows[0].items() if not field.endswith("reasons.active")}
        state["throttled_by"] = environment.throttled_by(rows[0])
    return state if processes is None else {**state, "processes": processes}
