"""Complete trainings, each in a process: every variant with every seed, variants taking turns."""

from collections.abc import Iterator
from pathlib import Path
from typing import cast

from msgspec.structs import replace

from tracekit.accuracy import accuracy_contrast, in_words, reached
from tracekit.capture import messages
from tracekit.capture.options import Options
from tracekit.capture.passes import train
from tracekit.capture.preparation import Prepared
from tracekit.run import Run, Training, Variant
from tracekit.run.training import TrainingOutcome


def trainings(run: Run, prepared: Prepared, folder: Path, caches: dict[str, Path], options: Options) -> Iterator[Run]:
    """Yield the run after each training. One that fails does not stop the others."""
    sound = {captured.name for captured in run.variants if captured.outcome == "ok"}
    able = [variant for variant in prepared.variants if variant.name in sound]
    for seed in range(run.seed, run.seed + options.seeds):
        for variant in able:
            options.tell(messages.training(variant.name, options.epochs, seed))
            result = train(seed, variant, prepared, folder, caches=caches[variant.name], options=options)
            failed = Training(
                seed=seed,
                epochs=options.epochs,
                outcome=cast("TrainingOutcome", result.outcome),
                error=result.error,
            )
            training = result.training or failed
            if training.outcome != "ok":
                options.tell(messages.lost_training(variant.name, seed, training.error or training.outcome))
            run = replace(
                run,
                variants=[
                    _with_training(captured, training) if captured.name == variant.name else captured
                    for captured in run.variants
                ],
            )
            yield run


def results(run: Run) -> Iterator[str]:
    """The results, each variant compared with the first."""
    trained = [variant for variant in run.variants if reached(variant.trainings) is not None]
    for variant in trained[1:]:
        if (contrast := accuracy_contrast(variant.trainings, trained[0].trainings)) is not None:
            yield f"{variant.name}: {in_words(contrast, variant.name, trained[0].name)}"


def _with_training(variant: Variant, training: Training) -> Variant:
    return replace(variant, trainings=[*variant.trainings, training])
