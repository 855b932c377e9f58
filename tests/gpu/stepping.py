"""A process that takes steps of one variant of a recipe when it is told to, and says how long one took:
`python -m tests.gpu.stepping RECIPE VARIANT DEVICE [NAME=VALUE …]`.

It says `ready` once nothing compiles any more. Then it reads a line for each thing to do: `time SECONDS` is answered
with ms a step, `record FOLDER` records some steps there.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.gpu.taking import record
from tracekit.capture.child import timing
from tracekit.capture.child.recipe import RecipeStep, load, make_context, seed_all
from tracekit.capture.compiler import CompileRecorder
from tracekit.capture.device import synchronize
from tracekit.capture.job import Job
from tracekit.capture.options import parse_all, plan_variants

_WARMUP, _AFTER_A_PAUSE = 12, 3  # steps
_RECORDED = 8


def main(recipe: str, name: str, device: str, *given: str) -> None:
    """Set up, warm up, and do what is asked."""
    module = load(recipe)
    declared = {**getattr(module, "PARAMS", {})}
    (planned,) = plan_variants([name], declared, getattr(module, "VARIANTS", {}), "inductor")
    params = {**parse_all(dict(text.split("=", 1) for text in given), declared), **planned.params}
    label = f"{Path(recipe).stem} {name}"
    job = Job(stage="live", program=recipe, label=label, requested=planned.requested, device=device, params=params)
    seed_all(job.seed)
    step = RecipeStep(module, make_context(module, job, []))
    seed_all(job.seed)
    with CompileRecorder() as recorder:
        timing.run_steps(timing.settle(recorder, _WARMUP), step)
    synchronize(device)
    answer("ready")
    for line in sys.stdin:
        what, _, argument = line.strip().partition(" ")
        if what == "time":
            answer(f"{_ms(step, device, float(argument)):.6f}")
        else:
            record(Path(argument), label, device, step, _RECORDED)
            answer("recorded")


def answer(text: str) -> None:
    """Print a line that nothing else prints."""
    print(f"answer {text}", flush=True)


def _ms(step: Callable[[], Any], device: str, seconds: float) -> float:
    for _ in range(_AFTER_A_PAUSE):
        step()
    synchronize(device)
    began = time.perf_counter()
    steps = 0
    while not steps or time.perf_counter() - began < seconds:
        step()
        steps += 1
    synchronize(device)
    return (time.perf_counter() - began) / steps * 1e3


if __name__ == "__main__":
    main(*sys.argv[1:])
