"""Where do steps begin and end, and are all of them there?"""

from collections.abc import Iterator

import numpy as np

from tracekit.base.units import count, duration, many, percent
from tracekit.trace.facts.law import Broken, law
from tracekit.trace.model import Trace
from tracekit.trace.roles import DATALOAD
from tracekit.trace.steps import find_iterations, find_repetition

_MIN_TIME_TOLD = 0.01  # of a recording: what lasts less at either end is not mentioned
_MIN_SHARE_WITH_BATCH = 0.8  # of the steps: what so many ask for is expected of the others
_MIN_STEPS_OF_A_LOADER = 3  # the first and the last may have no batch
_LISTED_STEPS = 6


@law("no_steps", "note")
def no_steps(trace: Trace) -> Iterator[Broken]:
    """No annotated steps, and none inferred: figures are of the whole recording.

    Holds: The loop marks its steps (`ProfilerStep#N`).
    Breaks: There are no marks, and nothing repeats so plainly that steps can be inferred.
    Then: Figures are of the whole recording, and no step is compared with another.
    Do: Call `prof.step()` in the loop.
    """
    if trace.threads.main is None or trace.steps.annotated or trace.steps.inferred is not None:
        return
    if (iterations := find_iterations(trace)) is not None:
        offered = f"--steps infer finds {len(iterations.starts)} steps, by {iterations.basis}."
    elif (repetition := find_repetition(trace)) is not None:
        offered = f"What repeats covers only {percent(repetition.coverage)} of it ({repetition.basis})."
    else:
        offered = "Nothing in the trace repeats as iterations do."
    yield Broken(
        f"No ProfilerStep annotations: figures are of the whole recording. {offered} Call prof.step() in the loop."
    )


@law("inferred_steps", "note")
def inferred_steps(trace: Trace) -> Iterator[Broken]:
    """Steps are inferred from what repeats.

    Holds: The loop marks its steps.
    Breaks: There are no marks; steps are where the optimizer's steps end, where batches are asked for, or where a
        sequence of operators recurs.
    Then: Their boundaries are not exact. `--steps annotated` does not infer any.
    Do: Call `prof.step()` in the loop.
    """
    steps = trace.steps
    if trace.threads.main is None or steps.annotated or steps.inferred is None:
        return
    sentence = f"No ProfilerStep annotations: {len(steps)} steps are inferred from {steps.inferred}."
    cut = "" if steps.whole is None or steps.whole.all() else " One that was cut off is left out of means."
    # What is recorded before the first step and after the last, which no figure per step covers.
    (low, high), (first, last) = trace.as_told(infer_steps=False).steps.window, steps.window
    parts = [
        f"{duration(time)} {side}"
        for time, side in ((first - low, "before the first"), (high - last, "after the last"))
        if time >= _MIN_TIME_TOLD * (high - low)
    ]
    rest = f", and {' and '.join(parts)} {'belongs' if len(parts) == 1 else 'belong'} to none" if parts else ""
    yield Broken(f"{sentence} Their boundaries are not exact{rest}.{cut}")


@law("lost_steps", "doubt", touches=("gpu work", "gpu idle", "host time", "steps"))
def lost_steps(trace: Trace) -> Iterator[Broken]:
    """Numbers of steps are missing: the work of a step without its mark counts as the step's before it.

    Holds: Numbers of steps follow each other.
    Breaks: A number is missing.
    Then: The step before the gap is not whole, and in no mean.
    Do: Record again; call `prof.step()` once a step, from one thread.
    """
    numbers = np.array(trace.steps.number, np.int64)
    jumps = np.diff(numbers) if trace.steps.annotated else numbers[:0]
    missing = np.flatnonzero(jumps != 1)
    if len(missing):
        before, after = int(numbers[missing[0]]), int(numbers[missing[0] + 1])
        rest = f", the first of {count(len(missing))} jumps" if len(missing) > 1 else ""
        yield Broken(
            f"Step {before} is followed by step {after}{rest}: the time between them counts as part of a step that "
            "it does not belong to.",
            len(missing),
            steps=tuple(missing.tolist()),
        )


@law("lost_batches", "doubt", touches=("host time",))
def lost_batches(trace: Trace) -> Iterator[Broken]:
    """Most steps ask a data loader for a batch, but some do not: events of the loader were lost.

    Holds: Where a loop asks a data loader for batches, it does so in each step.
    Breaks: At least 80 % of the steps ask for one, but some between the first and the last do not.
    Then: Waits for the loader may be missing, and count as Python then.
    Do: Record again. Where some steps reuse a batch on purpose, nothing is wrong.
    """
    steps = trace.steps
    if not steps.annotated or len(steps) < _MIN_STEPS_OF_A_LOADER:
        return
    rows = trace.where(lambda part: part.roles.annotation & part.roles.named(DATALOAD))
    has_batch = np.bincount(np.maximum(steps.of(trace.ts_ns[rows]), 0), minlength=len(steps)) > 0
    # The batch of the first step may have been asked for before the recording, and the last may need none.
    without = np.flatnonzero(~has_batch[1:-1]) + 1
    if len(without) and has_batch.sum() >= _MIN_SHARE_WITH_BATCH * len(steps):
        names = ", ".join(str(steps.number[step]) for step in without[:_LISTED_STEPS].tolist())
        yield Broken(
            f"No batch was asked for in {many(len(without), 'step')} ({names}), unlike in the others: waits for a "
            "data loader may be missing from the trace.",
            len(without),
        )
