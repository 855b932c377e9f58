"""Does a variant train as well as another? Their metric at the end of the training, compared seed by seed.

The result of a training differs from seed to seed more than most settings change it. A difference is only stated if its
confidence interval excludes zero, and "no loss" only if the interval leaves no room for a significant loss.
"""

import re
import statistics
from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import Struct

from tracekit.run import Training
from tracekit.statistics.uncertainty import CONFIDENCE, Interval, half_width_of_mean

Conclusion = Literal["better", "no loss", "worse", "unknown"]
MARGIN = 0.01  # of the baseline's metric: a smaller loss is not significant
_LOWER_IS_BETTER = re.compile(
    r"(?:.*[\W_])?(?:error|loss|mae|mse|rmse|mape|perplexity|rank)(?:[\W_].*)?", re.IGNORECASE
)


class Reached(Struct, frozen=True):
    """What the trainings of one variant reached in one metric, by seed."""

    metric: str
    values: Mapping[int, float]

    @property
    def mean(self) -> float:
        """The mean over the seeds."""
        return statistics.fmean(self.values.values())

    @property
    def spread(self) -> float | None:
        """The standard deviation between seeds; None for fewer than two."""
        return statistics.stdev(self.values.values()) if len(self.values) > 1 else None


class AccuracyContrast(Struct, frozen=True):
    """The metric of a variant less that of its baseline, over the seeds that both were trained with."""

    metric: str
    difference: float
    interval: Interval | None  # None for fewer than two seeds
    seeds: int
    baseline: float  # the mean of the baseline over these seeds

    @property
    def verdict(self) -> Conclusion:
        """Whether the metric is better, no worse, worse or unknown, as far as its interval tells."""
        if self.interval is None:
            return "unknown"
        sign = -1 if lower_is_better(self.metric) else 1
        low, high = sorted(sign * end for end in self.interval)
        if low > 0:
            return "better"
        if low >= -MARGIN * abs(self.baseline):
            return "no loss"
        return "worse" if high < 0 else "unknown"


def lower_is_better(metric: str) -> bool:
    """Whether the metric is an error, by its name."""
    return _LOWER_IS_BETTER.fullmatch(metric) is not None


def reached(trainings: Sequence[Training]) -> Reached | None:
    """The first metric of the trainings that finished; None if they have none."""
    ended = [training for training in trainings if training.outcome == "ok"]
    name = next((name for training in ended for name in training.metrics), None)
    if name is None:
        return None
    values = {training.seed: value for training in ended if (value := training.metrics.get(name)) is not None}
    return Reached(name, values) if values else None


def accuracy_contrast(ours: Sequence[Training], theirs: Sequence[Training]) -> AccuracyContrast | None:
    """The comparison; None if the two have no seed trained for equally many epochs in common, or no common metric."""
    epochs = {(training.seed, training.epochs) for training in theirs}
    mine, base = reached([training for training in ours if (training.seed, training.epochs) in epochs]), reached(theirs)
    if mine is None or base is None or mine.metric != base.metric:
        return None
    seeds = [seed for seed in base.values if seed in mine.values]
    if not seeds:
        return None
    differences = [mine.values[seed] - base.values[seed] for seed in seeds]
    middle, half = statistics.fmean(differences), half_width_of_mean(differences, CONFIDENCE)
    interval = (middle - half, middle + half) if len(seeds) > 1 else None
    return AccuracyContrast(
        mine.metric, middle, interval, len(seeds), statistics.fmean(base.values[seed] for seed in seeds)
    )


def in_words(contrast: AccuracyContrast, variant: str, baseline: str) -> str:
    """`no loss of test accuracy: compiled 0.812, eager 0.811 (difference −0.003 … +0.005, 95 %, 10 seeds)`."""
    ours = contrast.baseline + contrast.difference
    means = f"{variant} {ours:.4g}, {baseline} {contrast.baseline:.4g}"
    if contrast.interval is None:
        return (
            f"whether {variant} trains as well as {baseline} cannot be concluded from one seed "
            f"({contrast.metric}: {means}); --seeds 5 trains with five"
        )
    low, high = (f"{end:+.2g}".replace("-", "−") for end in contrast.interval)
    figures = f"{means}; difference {low} … {high}, {CONFIDENCE * 100:.0f} %, {contrast.seeds} seeds"
    if contrast.verdict == "unknown":
        return (
            f"whether {variant} trains as well as {baseline} cannot be concluded from {contrast.seeds} seeds: the "
            f"interval leaves room for a loss of more than {MARGIN * 100:.0f} % ({contrast.metric}: {figures})"
        )
    conclusion = {"better": "better", "no loss": "no loss of", "worse": "worse"}[contrast.verdict]
    return f"{conclusion} {contrast.metric}: {figures}"
