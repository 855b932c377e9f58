"""A planted line is found with or without outliers, and its interval contains the truth as often as it claims."""

import numpy as np
import pytest

from tracekit.statistics.robust_line import fit

FIXED, SLOPE = 1_200_000.0, 0.8  # ns, ns per edge: 1.2 ms and 0.8 µs per thousand edges


def steps(rng, count=120, noise=0.02, wild=0.0, low=200_000, high=3_000_000):
    edges = rng.uniform(low, high, count)
    ns = (FIXED + SLOPE * edges) * np.exp(rng.normal(0, noise, count))
    ns[rng.random(count) < wild] *= rng.uniform(2, 40)
    return edges, ns


def test_without_noise_it_is_exact():
    line = fit(np.arange(10.0), 3 + 2 * np.arange(10.0))
    assert (line.fixed, line.slope, line.explained) == pytest.approx((3, 2, 1))
    assert line.slope_interval == pytest.approx((2, 2))


@pytest.mark.parametrize("wild", [0.0, 0.1, 0.2])
def test_the_planted_line_is_found_within_5_percent(wild):
    for seed in range(20):
        line = fit(*steps(np.random.default_rng(seed), wild=wild))
        assert line.fixed == pytest.approx(FIXED, rel=0.05)
        assert line.slope == pytest.approx(SLOPE, rel=0.05)


def test_intervals_hold_the_truth():
    lines = [fit(*steps(np.random.default_rng(seed), count=40, noise=0.05, wild=0.05)) for seed in range(300)]
    held = [
        np.mean([low <= truth <= high for low, high in intervals])
        for truth, intervals in (
            (FIXED, [line.fixed_interval for line in lines]),
            (SLOPE, [line.slope_interval for line in lines]),
        )
    ]
    assert min(held) > 0.9


def test_passes_that_share_a_mood_widen_the_interval():
    rng = np.random.default_rng(0)
    parts = [steps(rng, count=30) for _ in range(6)]
    moods = np.exp(rng.normal(0, 0.05, 6))
    x = np.concatenate([edges for edges, _ in parts])
    y = np.concatenate([ns * mood for (_, ns), mood in zip(parts, moods, strict=True)])
    alone, grouped = fit(x, y), fit(x, y, np.repeat(np.arange(6), 30))
    assert np.ptp(grouped.slope_interval) > 1.5 * np.ptp(alone.slope_interval)
    assert grouped.slope_interval[0] <= SLOPE <= grouped.slope_interval[1]
