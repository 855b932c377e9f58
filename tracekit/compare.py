"""Differences between two variants, bucket by bucket: they add up, and each has a confidence interval."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tracekit.engine.buckets import HOST, WALL
from tracekit.intervals import Ints
from tracekit.profile import Member, Profile
from tracekit.uncertainty import CONFIDENCE, Interval

_RESAMPLES = 2000
_CELLS = 8_000_000  # resamples × steps in memory at once
_SEED = 20_240_517  # any fixed number, so that the same traces always give the same intervals

# Each side has one profiled pass, and the steps of one pass cannot show how much passes differ from each other.
COVERS = "the steps of one trace each; they do not cover differences between passes"


@dataclass(frozen=True)
class Difference:
    """One view of a variant minus that of the baseline, in mean ns per step; `parts` add up to `delta_ns`."""

    delta_ns: float
    parts: dict[str, float]
    delta_interval: Interval | None
    intervals: dict[str, Interval | None]  # None where either side has fewer than two steps

    def is_noise(self, key: str | None = None) -> bool:
        """Whether the difference is within noise: its interval contains 0, or there is no interval."""
        interval = self.intervals[key] if key is not None else self.delta_interval
        return interval is None or interval[0] <= 0 <= interval[1]


@dataclass(frozen=True)
class Comparison:
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
    sides = [side for side in (member, baseline) if isinstance(side, Profile)]
    traced = len(sides) == 2
    return Comparison(
        variant=member.name,
        baseline=baseline.name,
        wall=_difference(WALL, *(side.attribution.wall[side.answered["wall"]] for side in sides)) if traced else None,
        host=_difference(HOST, *(side.attribution.host[side.answered["host"]] for side in sides)) if traced else None,
    )


def _difference(keys: tuple[str, ...], ours: Ints, theirs: Ints) -> Difference | None:
    if not len(ours) or not len(theirs):
        return None
    parts = ours.sum(axis=0) / len(ours) - theirs.sum(axis=0) / len(theirs)
    total = float(ours.sum() / len(ours) - theirs.sum() / len(theirs))
    intervals: list[Interval | None] = [None] * (len(keys) + 1)
    if len(ours) > 1 and len(theirs) > 1:
        tail = (1 - CONFIDENCE) / 2
        rng = np.random.default_rng(_SEED)  # drawn independently: the steps of two variants are not paired
        drawn = _resampled(_with_total(ours), rng) - _resampled(_with_total(theirs), rng)
        low, high = np.quantile(drawn, [tail, 1 - tail], axis=0)
        intervals = list(zip(low.tolist(), high.tolist(), strict=True))
    return Difference(
        delta_ns=total,
        parts=dict(zip(keys, parts.tolist(), strict=True)),
        delta_interval=intervals[-1],
        intervals=dict(zip(keys, intervals, strict=False)),
    )


def _with_total(rows: Ints) -> Ints:
    return np.column_stack((rows, rows.sum(axis=1)))


def _resampled(rows: Ints, rng: "np.random.Generator") -> NDArray[np.float64]:
    """Means over steps drawn with replacement: one row per resample (Efron 1979, the percentile bootstrap)."""
    size = len(rows)
    batch = max(1, min(_RESAMPLES, _CELLS // size))
    means = [
        rng.multinomial(size, np.full(size, 1 / size), size=min(batch, _RESAMPLES - done)) @ rows / size
        for done in range(0, _RESAMPLES, batch)
    ]
    return np.concatenate(means)
