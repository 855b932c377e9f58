"""The settings of a study: how does each variant compare with the first one of its setting, over the seeds? And a study
narrowed to some of its cells, with the baselines that they are compared with."""

import math
import statistics
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache

from msgspec import Struct
from msgspec.structs import replace

from tracekit.base.units import many
from tracekit.errors.capturing import NoCellError
from tracekit.run import Measured, Training, Variant, divergence, gradient_tolerance, loss_tolerance
from tracekit.run.accuracy import AccuracyContrast, accuracy_contrast
from tracekit.run.contrast import cold_cost_ns, contrast, prior_of_pairs, step_interval, steps_to_break_even
from tracekit.statistics.uncertainty import (
    CONFIDENCE,
    NOTHING_KNOWN,
    Interval,
    Prior,
    half_width_of_mean,
    interval_from_logs,
    is_noise,
    says_nothing,
)
from tracekit.study.store import CellResult, Study, values_of

ONE_PASS = "one pass"


class Group(Struct, frozen=True, dict=True):
    """The cells of one variant at one setting, a cell per seed."""

    setting: dict[str, str]
    variant: str
    results: tuple[CellResult, ...]

    @cached_property
    def measured(self) -> dict[int, Measured]:
        """The measurements, by seed."""
        return {result.cell.seed: result.measured for result in self.results if result.measured is not None}

    def with_seeds(self, seeds: Collection[int]) -> "Group":
        """Its cells with these seeds."""
        if all(result.cell.seed in seeds for result in self.results):
            return self
        return replace(self, results=tuple(result for result in self.results if result.cell.seed in seeds))

    @property
    def step_ns(self) -> float | None:
        """The geometric mean over the seeds; None where nothing was measured."""
        times = [measured.step_ns for measured in self.measured.values()]
        return statistics.geometric_mean(times) if times else None

    @property
    def step_interval(self) -> Interval | None:
        """The 95 % interval of the step time, ns, over the seeds or, for one seed, over its passes; None if it is
        unknown."""
        if len(self.measured) == 1:
            return step_interval(next(iter(self.measured.values())))
        return geometric_mean(self._log_steps)[1] if self.measured else None

    @property
    def spread(self) -> float | None:
        """The standard deviation of the logarithm of the step time between seeds; None for fewer than two."""
        return statistics.stdev(self._log_steps) if len(self.measured) > 1 else None

    @property
    def _log_steps(self) -> list[float]:
        return [math.log(measured.step_ns) for measured in self.measured.values()]

    @property
    def compile_ns(self) -> float | None:
        """The mean over the seeds of the time inside compilations."""
        times = [measured.compile_ns for measured in self.measured.values()]
        return statistics.fmean(times) if times else None

    @property
    def variants(self) -> list[Variant]:
        """The variants in the runs of its cells, including those that ended early."""
        return [result.variant for result in self.results if result.variant is not None]

    def mean(self, read: Callable[[Variant], float | None]) -> float | None:
        """The mean over the seeds of a value in the runs; None if no run has it."""
        values = [value for variant in self.variants if (value := read(variant)) is not None]
        return statistics.fmean(values) if values else None

    @property
    def trainings(self) -> list[Training]:
        """The trainings that finished, of all seeds."""
        return [training for variant in self.variants for training in variant.trainings]

    @property
    def failures(self) -> list[CellResult]:
        """The cells that did not succeed."""
        return [result for result in self.results if result.outcome not in ("ok", "planned")]

    @property
    def ran_eagerly(self) -> str | None:
        """Why it ran eagerly although it should have been compiled; None if it did not."""
        effective = (result.variant.effective.ran_eagerly for result in self.results if result.variant is not None)
        return next((why for why in effective if why), None)

    @property
    def gave_up(self) -> bool:
        """Whether the compiler gave up on a function at the recompile limit."""
        return any(result.variant.ledger.limits for result in self.results if result.variant is not None)


class SpeedUp(Struct, frozen=True):
    """How much faster or slower a variant is than its baseline, at one setting. Both groups have the same seeds."""

    group: Group
    baseline: Group
    time_ratio: float  # its step time divided by the baseline's: below 1 is faster
    interval: Interval | None  # of the time ratio; None for a single pass each
    seeds: int  # seeds with which both were measured; with two or more, the interval covers how much seeds differ
    passes: int  # of the cell that has the fewest

    @property
    def speed_up(self) -> float:
        """The step time of the baseline divided by its own: above 1 is faster."""
        return 1 / self.time_ratio

    @property
    def noise(self) -> bool:
        """Whether the difference is within noise."""
        return is_noise(self.interval)

    @property
    def basis(self) -> str:
        """What the interval rests on: `3 seeds`, `6 passes`, or `one pass`, which does not show how much passes
        differ."""
        if self.seeds > 1:
            return many(self.seeds, "seed")
        return many(self.passes, "pass", "passes") if self.passes > 1 else ONE_PASS

    @property
    def break_even_steps(self) -> float | None:
        """After how many steps the time saved makes up for the slower start; None if it is not certain to save any."""
        extra, baseline_cost = self.group.mean(cold_cost_ns), self.baseline.mean(cold_cost_ns)
        base = self.baseline.step_ns
        if self.noise or self.time_ratio >= 1 or extra is None or baseline_cost is None or base is None:
            return None
        return steps_to_break_even(extra - baseline_cost, base * (1 - self.time_ratio))

    @property
    def losses_differ(self) -> bool:
        """Whether the losses differ from the baseline's by more than rounding explains, at any seed."""
        by_seed = {result.cell.seed: result for result in self.baseline.results}
        for result in self.group.results:
            baseline = by_seed.get(result.cell.seed)
            if baseline is None or result.variant is None or baseline.variant is None:
                continue
            ours, theirs = result.variant, baseline.variant
            of_losses = divergence(theirs.losses, ours.losses)
            if of_losses is not None and of_losses > loss_tolerance(ours.loss_drift, theirs.loss_drift):
                return True
            of_gradients = divergence(theirs.gradients, ours.gradients)
            tolerance = gradient_tolerance(ours.gradient_drift, theirs.gradient_drift)
            if of_gradients is not None and of_gradients > tolerance:
                return True
        return False

    @property
    def accuracy(self) -> AccuracyContrast | None:
        """How well it trains compared with its baseline; None if they were not trained to their end."""
        return accuracy_contrast(self.group.trainings, self.baseline.trainings)


class Setting(Struct, frozen=True, dict=True):
    """A setting with all its variants, the first of which is the baseline."""

    name: str
    axes: dict[str, str]
    groups: tuple[Group, ...]

    @property
    def baseline(self) -> Group | None:
        """The first variant of the sweep file; None if it was not measured, so that nothing can be compared."""
        return self.groups[0] if self.groups[0].measured else None

    @cached_property
    def speed_ups(self) -> list[SpeedUp]:
        """Every variant that can be compared with the baseline."""
        base = self.baseline
        comparisons = (speed_up(group, base) for group in self.groups[1:] if base is not None)
        return [comparison for comparison in comparisons if comparison is not None]

    def speed_up_of(self, variant: str) -> SpeedUp | None:
        """How that variant compares with the baseline; None if it cannot be compared."""
        return next((comparison for comparison in self.speed_ups if comparison.group.variant == variant), None)


@lru_cache(1)  # every section needs them
def settings(study: Study) -> list[Setting]:
    """The settings of the study in the order of its plan; their names leave out what all have in common."""
    by_setting: dict[tuple[tuple[str, str], ...], dict[str, list[CellResult]]] = {}
    for result in study.results:
        variants = by_setting.setdefault(tuple(sorted(result.cell.setting.items())), {})
        variants.setdefault(result.cell.variant, []).append(result)
    names = names_of([dict(key) for key in by_setting])
    return [
        Setting(
            name, dict(key), tuple(Group(dict(key), variant, tuple(results)) for variant, results in variants.items())
        )
        for name, (key, variants) in zip(names, by_setting.items(), strict=True)
    ]


def groups_of(study: Study) -> Iterator[tuple[Setting, Group]]:
    """Every variant at every setting."""
    return ((setting, group) for setting in settings(study) for group in setting.groups)


def narrowed(study: Study, selection: Mapping[str, Sequence[str]]) -> Study:
    """The cells whose axes have these values, and the first variant at the setting of each. Raises NoCellError."""
    axes = {axis: [*values] for axis, values in selection.items()}
    keys = {result.cell.key for result in study.results if result.cell.matches(axes)}
    if not keys:
        raise NoCellError(axes, values_of(study.cells))
    for setting in settings(study):
        if any(result.cell.key in keys for group in setting.groups for result in group.results):
            keys |= {result.cell.key for result in setting.groups[0].results}
    return Study(study.folder, study.manifest, [result for result in study.results if result.cell.key in keys])


def names_of(all_axes: Sequence[dict[str, str]]) -> list[str]:
    """`gat_pubmed model=gat`: the recipe, and the axes in which settings of the study differ."""
    values: dict[str, set[str | None]] = {}
    for axis in dict.fromkeys(axis for axes in all_axes for axis in axes):
        values[axis] = {axes.get(axis) for axes in all_axes}
    varying = [axis for axis, different in values.items() if len(different) > 1 and axis != "recipe"]
    return [
        " ".join([axes["recipe"], *(f"{axis}={axes[axis]}" for axis in varying if axes.get(axis))]) for axes in all_axes
    ]


def speed_up(group: Group, baseline: Group) -> SpeedUp | None:
    """One variant compared with another at the same setting, by the seeds that both have; None if there is none."""
    seeds = [seed for seed in baseline.measured if seed in group.measured]
    group, baseline = group.with_seeds(seeds), baseline.with_seeds(seeds)
    contrasts = [contrast(group.measured[seed], baseline.measured[seed]) for seed in seeds]
    if not contrasts:
        return None
    if len(contrasts) == 1:
        return SpeedUp(group, baseline, contrasts[0].ratio, contrasts[0].interval, 1, contrasts[0].passes)
    logs = [math.log(seed_contrast.ratio) for seed_contrast in contrasts]
    prior = prior_of_pairs(*(side.measured[seed] for side in (group, baseline) for seed in seeds))
    passes = min(seed_contrast.passes for seed_contrast in contrasts)
    return SpeedUp(group, baseline, *geometric_mean(logs, prior), len(logs), passes)


def geometric_mean(logs: Sequence[float], prior: Prior = NOTHING_KNOWN) -> tuple[float, Interval]:
    """The geometric mean of values whose logarithms these are, and its 95 % interval."""
    middle, half = statistics.fmean(logs), half_width_of_mean(logs, CONFIDENCE, prior)
    return math.exp(middle), interval_from_logs(middle - half, middle + half)


def interval_text(interval: Interval | None) -> str | None:
    """`0.96–1.31`; None if it is unknown, or so wide that it says nothing."""
    if interval is None or says_nothing(interval):
        return None
    return f"{interval[0]:.2f}–{interval[1]:.2f}"
