"""Studies with planted results: runs as a capture writes them, without capturing anything."""

import math
import random
import statistics
import time

from msgspec.structs import replace

from tracekit import run as runs
from tracekit.run import Measured, Memory, Pass, Requested, Run, Training, Variant

MS = 1_000_000


def measured(step_ms, *, compile_s=0.0, passes=6, spread=0.01):
    """Passes whose medians lie around `step_ms`, at intervals of `spread`."""
    ranks = random.Random(passes).sample(range(passes), passes)  # in a row, they would look like drift
    ns = [round(step_ms * MS * math.exp(spread * (rank - (passes - 1) / 2) / passes)) for rank in ranks]
    now = time.time_ns()
    each = [Pass(round=k, started_ns=now + k, step_ns=value, step_all_ns=[value] * 9) for k, value in enumerate(ns)]
    return Measured(
        step_ns=round(statistics.geometric_mean(ns)),
        step_all_ns=[value for value in ns for _ in range(9)],
        spread_ns=0,
        first_steps_ns=[round(step_ms * MS + compile_s * 1e9), ns[0], ns[0]],
        compile_ns=round(compile_s * 1e9),
        clock="perf_counter",
        passes=each,
    )


def write_run(
    options,
    step_ms,
    *,
    compile_s=0.0,
    passes=6,
    spread=0.01,
    losses=(1.0, 0.5),
    memory=None,
    accuracy=None,
    epoch_steps=None,
):
    """Write and return what `capture(options)` would have."""
    name = options.variants[0]
    reached = {"test accuracy": accuracy} if accuracy is not None else {}
    training = Training(seed=options.seed, epochs=10, steps=1, epoch_all_ns=[MS] * 10, metrics=reached)
    variant = Variant(
        name=name,
        outcome="ok",
        workload=options.workload,
        requested=Requested(compile=name != "eager"),
        measured=replace(measured(step_ms, compile_s=compile_s, passes=passes, spread=spread), epoch_steps=epoch_steps),
        memory=memory or Memory(host_peak_rss_bytes=100 << 20),
        trainings=[training] if reached else [],
        losses=list(losses),
    )
    run = Run(
        created=runs.now(),
        tracekit="0",
        recipe=options.program.stem,
        script=str(options.program),
        params=dict(options.params),
        seed=options.seed,
        environment={"torch": "2.13.0", "cpu": "A", "packages": {"numpy": "2.4.0", "rich": "14.0"}},
        variants=[variant],
    )
    runs.write(run, options.out)
    return run


def sweep_file(folder, text):
    """A sweep file of one recipe that is never run."""
    (folder / "net.py").write_text("def setup(ctx):\n    return lambda: None\n")
    path = folder / "sweep.toml"
    path.write_text(text)
    return path
