"""Does each variant train as well as its baseline? The recipe's metric after a number of epochs, over several seeds."""

from typing import Any

import pyarrow as pa
from msgspec.structs import asdict

from tracekit.profile import Member
from tracekit.report.blocks import Sentences, Table
from tracekit.report.model import Report
from tracekit.report.section import Contents, of_run
from tracekit.run import Training
from tracekit.run.accuracy import accuracy_contrast, in_words, reached
from tracekit.trace.schema import column

_REAL, _INTEGER, _TEXT = pa.float64(), pa.int64(), pa.string()
ACCURACY_COLUMNS = (
    column("metric", _TEXT, "the recipe's metric after its last epoch"),
    column("mean", _REAL, "mean over the seeds", "1"),
    column("between_seeds", _REAL, "standard deviation between seeds; null for one", "1"),
    column("seeds", _INTEGER, "trainings that finished"),
    column("failed", _INTEGER, "trainings that failed"),
    column("difference", _REAL, "difference from the baseline, seed by seed", "1"),
    column("low", _REAL, "lower end of its 95 % interval; null for one seed", "1"),
    column("high", _REAL, "upper end of its 95 % interval", "1"),
    column("verdict", _TEXT, "what the interval supports: better, no loss, worse, unknown"),
    column("epoch_ns", _REAL, "an epoch of these trainings, with compilation spread over all epochs", "ns"),
)
ACCURACY = pa.schema(
    [
        column("variant", _TEXT, "name of the variant", role="name"),
        column("baseline", _TEXT, "variant that it is compared with", role="name"),
        *ACCURACY_COLUMNS,
    ]
)
TRAININGS = pa.schema(
    [
        column("variant", _TEXT, "name of the variant", role="name"),
        column("seed", _INTEGER, "seed of every random number generator", role="identity"),
        column("outcome", _TEXT, "ok, oom, timeout, crash or error"),
        column("error", _TEXT, "why it did not finish"),
        column("epochs", _INTEGER, "epochs trained"),
        column("steps", _INTEGER, "steps per epoch"),
        column("metric", _TEXT, "name of the recipe's metric"),
        column("value", _REAL, "its value after the last epoch", "1"),
        column("loss", _REAL, "loss of the last step", "1"),
        column("first_epoch_ns", _REAL, "the first epoch", "ns"),
        column("epoch_ns", _REAL, "mean of all epochs, compilation included", "ns"),
    ]
)


@of_run("accuracy", "Accuracy", rank=39)
def accuracy(report: Report) -> Contents | None:
    """A sentence for each variant that was trained to its end beside its baseline, and all trainings as a table."""
    trained = [member for member in report.members if trainings_of(member)]
    if not trained:
        return None
    sentences, rows = [], []
    for member in trained:
        base = report.base_of(member)
        trainings = trainings_of(member)
        base_trainings = trainings_of(base) if member is not base else []
        contrast = accuracy_contrast(trainings, base_trainings)
        if contrast is not None:
            sentences.append(f"{member.name}: {in_words(contrast, member.name, base.name)}.")
        baseline = base.name if contrast is not None else None
        rows.append({"variant": member.name, "baseline": baseline, **accuracy_row(trainings, base_trainings)})
    training_rows = [
        {
            "variant": member.name,
            **asdict(training),
            "metric": next(iter(training.metrics), None),
            "value": next(iter(training.metrics.values()), None),
            "first_epoch_ns": float(times[0]) if (times := training.epoch_all_ns) else None,
            "epoch_ns": sum(times) / len(times) if times else None,
        }
        for member in trained
        for training in trainings_of(member)
    ]
    tables = (Table.of("accuracy", rows, ACCURACY), Table.of("trainings", training_rows, TRAININGS, detail=True))
    return Contents((Sentences(tuple(sentences)), *tables) if sentences else tables)


def trainings_of(member: Member) -> list[Training]:
    """The trainings of a variant to their end."""
    return member.variant.trainings if member.variant is not None else []


def accuracy_row(trainings: list[Training], base_trainings: list[Training]) -> dict[str, Any]:
    """The values of `ACCURACY_COLUMNS`; without a baseline those that compare are null."""
    reached_by, contrast = reached(trainings), accuracy_contrast(trainings, base_trainings)
    low, high = contrast.interval if contrast is not None and contrast.interval is not None else (None, None)
    epochs = [ns for training in trainings for ns in training.epoch_all_ns]
    return {
        "metric": reached_by.metric if reached_by is not None else None,
        "mean": reached_by.mean if reached_by is not None else None,
        "between_seeds": reached_by.spread if reached_by is not None else None,
        "seeds": len(reached_by.values) if reached_by is not None else 0,
        "failed": sum(training.outcome != "ok" for training in trainings),
        "difference": contrast.difference if contrast is not None else None,
        "low": low,
        "high": high,
        "verdict": contrast.verdict if contrast is not None else None,
        "epoch_ns": sum(epochs) / len(epochs) if epochs else None,
    }
