"""What a capture of several worlds measures: unprofiled passes, and traces by a profiler that takes time itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from tests.world.machine import Recorder
from tests.world.worlds import World
from tracekit import run as runs
from tracekit.run import Measured, Requested, Run, Traces, Variant


def profiled(world: World, recorder: Recorder) -> World:
    """The world while it is recorded: a frame that is not recorded costs nothing."""
    frame = recorder.frame if world.stacks else 0
    return replace(world, hardware=replace(world.hardware, recorder=replace(recorder, frame=frame)))


def capture(
    folder: Path, worlds: Mapping[str, World], recorder: Recorder, unprofiled: Mapping[str, float] | None = None
) -> Path:
    """Write a run. Its unprofiled steps may be a multiple of those of the worlds."""
    variants = []
    for name, world in worlds.items():
        step = round(world.step_ns * (unprofiled or {}).get(name, 1.0))
        trace = profiled(world, recorder).write(folder / name)
        variants.append(
            Variant(
                name=name,
                outcome="ok",
                requested=Requested(compile=False),
                traces=Traces(steady=str(trace.relative_to(folder))),
                measured=Measured(step_ns=step, step_all_ns=[step] * 20, spread_ns=0, clock="cuda events"),
            )
        )
    path = folder / "run.json"
    run = Run(created=runs.now(), tracekit="0", recipe="world", script="world.py", device="cuda", variants=variants)
    runs.write(run, path)
    return path
