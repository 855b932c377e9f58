"""Differences between two variants, bucket by bucket: they add up, and each has a confidence interval."""

import statistics
from random import Random

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from tracekit.base.intervals import Ints
from tracekit.engine.buckets import HOST, WALL
from tracekit.profile import Member, Profile
from tracekit.profile.calibration import Calibration
from tracekit.run.contrast import prior_of_pairs
from tracekit.statistics.uncertainty import CONFIDENCE, CONFIDENCE_WHERE_STOPPED, Interval, Prior, half_width_of_mean

_RESAMPLES = 2000
_CELLS = 8_000_000  # resamples × steps in memory at once
_SEED = 20_240_517  # any fixed number, so that the same traces always give the same intervals

# Each side has one profiled pass, and the steps of one pass cannot show how much passes differ from each other.
COVERS = "the steps of one trace each: another run may differ by more"
COVERS_PAIRS = (
    "pairs of traces, each of a separate process; the variants took all of them, or all but one pair, in turns"
)
_LEAST_PAIRS = 3  # fewer agree by chance
_ENOUGH_PAIRS = 4  # with fewer, the traces of which the means are told, which were not taken in turns, are a pair, too


class Difference(Struct, frozen=True):
    """One view of a variant minus that of the baseline, in mean ns per step; `parts` add up to `delta_ns`."""

    delta_ns: float
    parts: dict[str, float]
    delta_interval: Interval | None
    intervals: dict[str, Interval | None]  # None where either side has fewer than two steps
    pairs: int = 0  # of traces that the intervals rest on; 0 if they rest on the steps of one trace each

    @property
    def covers(self) -> str:
        """What the intervals cover."""
        return COVERS_PAIRS if self.pairs else COVERS

    def is_noise(self, key: str | None = None) -> bool:
        """Whether the difference is within noise: its interval contains 0, or there is no interval."""
        interval = self.interval_of(key)
        return interval is None or interval[0] <= 0 <= interval[1]

    def is_outside(self, key: str | None = None) -> bool:
        """Whether the difference, which is from the longest trace each, lies outside its interval over pairs of other
        traces: those show another difference."""
        interval, delta_ns = self.interval_of(key), self.parts[key] if key is not None else self.delta_ns
        return bool(self.pairs) and interval is not None and not interval[0] <= delta_ns <= interval[1]

    def interval_of(self, key: str | None = None) -> Interval | None:
        """The interval of a bucket, or of the whole."""
        return self.intervals[key] if key is not None else self.delta_interval


class Comparison(Struct, frozen=True):
    """A variant compared with the baseline; a view is None where either side cannot answer it."""

    variant: str
    baseline: str
    wall: Difference | None
    host: Difference | None

    @property
    def views(self) -> dict[str, Difference | None]:
        """Both views, by name."""
        return {"wall": self.wall, "host": self.host}


def compare(member: Member, baseline: Member) -> Comparison:
    """The mean over the counted steps of `member` minus that of `baseline`, bucket by bucket; None without traces."""
    if not isinstance(member, Profile) or not isinstance(baseline, Profile):
        return Comparison(member.name, baseline.name, None, None)
    ours, theirs = member.attribution, baseline.attribution
    wall = _difference(WALL, ours.wall[member.answered["wall"]], theirs.wall[baseline.answered["wall"]])
    host = _difference(HOST, ours.host[member.answered["host"]], theirs.host[baseline.answered["host"]])
    views = {"wall": wall, "host": host}
    paired = {name: view and by_pairs(view, name, member, baseline) for name, view in views.items()}
    return Comparison(member.name, baseline.name, **paired)


def by_pairs(difference: Difference, view: str, member: Profile, baseline: Profile) -> Difference:
    """The difference with intervals over the pairs of short traces that were taken in turns, if there are enough.

    What is expected of pairs of passes beforehand is expected of each bucket as well: a standard deviation of that
    share of its time.
    """
    ours, theirs = member.means_of_turns, baseline.means_of_turns
    rounds = [(ours[number][view], theirs[number][view]) for number in sorted({*ours} & {*theirs})]
    if len(rounds) < _ENOUGH_PAIRS:
        rounds.append((member.means[view], baseline.means[view]))
    pairs = [
        (our_trace, their_trace)
        for our_trace, their_trace in rounds
        if our_trace is not None and their_trace is not None
    ]
    if len(pairs) < _LEAST_PAIRS:
        return difference
    sides = [side.variant.measured for side in (member, baseline) if side.variant and side.variant.measured]
    prior = prior_of_pairs(*sides)

    def interval(ours_ns: list[float], theirs_ns: list[float]) -> Interval:
        changes = [our_trace - their_trace for our_trace, their_trace in zip(ours_ns, theirs_ns, strict=True)]
        expected = prior.deviation * statistics.fmean([*ours_ns, *theirs_ns])
        middle = statistics.fmean(changes)
        half = half_width_of_mean(changes, CONFIDENCE_WHERE_STOPPED, Prior(expected, prior.freedom))
        return middle - half, middle + half

    return replace(
        difference,
        delta_interval=interval(*([side.step_ns for side in values] for values in zip(*pairs, strict=True))),
        intervals={
            key: interval(*([side.parts[key] for side in values] for values in zip(*pairs, strict=True)))
            for key in difference.parts
        },
        pairs=len(pairs),
    )


def calibrated(ours: Calibration, theirs: Calibration) -> Difference:
    """The difference in wall time without the time of recording, an estimate without intervals."""
    parts = {key: ours.wall[key] - theirs.wall[key] for key in WALL}
    return Difference(sum(parts.values()), parts, None, dict.fromkeys(WALL))


def _difference(keys: tuple[str, ...], ours: Ints, theirs: Ints) -> Difference | None:
    if not len(ours) or not len(theirs):
        return None
    parts = ours.sum(axis=0) / len(ours) - theirs.sum(axis=0) / len(theirs)
    total = float(ours.sum() / len(ours) - theirs.sum() / len(theirs))
    intervals: list[Interval | None] = [None] * (len(keys) + 1)
    if len(ours) > 1 and len(theirs) > 1:
        tail = (1 - CONFIDENCE) / 2
        rng = Random(_SEED)  # drawn independently: the steps of two variants are not paired
        drawn = _resampled(ours, rng) - _resampled(theirs, rng)
        low, high = np.quantile(drawn, [tail, 1 - tail], axis=0)
        intervals = list(zip(low.tolist(), high.tolist(), strict=True))
    return Difference(
        delta_ns=total,
        parts=dict(zip(keys, parts.tolist(), strict=True)),
        delta_interval=intervals[-1],
        intervals=dict(zip(keys, intervals, strict=False)),
    )


def _resampled(rows: Ints, rng: Random) -> NDArray[np.float64]:
    """Means of each column and of their sums, over steps drawn with replacement: one row per resample (Efron 1979, the
    percentile bootstrap)."""
    size, rows = len(rows), np.column_stack((rows, rows.sum(axis=1)))
    batch = max(1, min(_RESAMPLES, _CELLS // size))
    means = []
    for first in range(0, _RESAMPLES, batch):
        count = min(batch, _RESAMPLES - first)
        drawn = np.frombuffer(rng.randbytes(4 * count * size), "<u4").reshape(count, size) % size
        times_drawn = np.bincount((drawn + size * np.arange(count)[:, None]).reshape(-1), minlength=count * size)
        means.append(times_drawn.reshape(count, size) @ rows / size)
    return np.concatenate(means)
