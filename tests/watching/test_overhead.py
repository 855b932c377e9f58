"""What watching costs is measured, and told in words: few steps here; `make bench` measures until it is sure."""

import json

import pytest

from tracekit.watching import overhead


def test_the_cost_of_one_training_is_measured(monkeypatch):
    monkeypatch.setattr(overhead, "BLOCK_S", 0.0)
    monkeypatch.setattr(overhead, "LEAST_PAIRS", 2)
    monkeypatch.setattr(overhead, "FIRST_STEPS", 16)
    cost = overhead.measure("a DataLoader loop", overhead.loader_loop, seconds=0.0)
    assert cost.pairs == 2
    assert cost.step_ms > 0
    assert abs(cost.cost_us) < 1e3 * cost.step_ms  # twice as long a step would be noticed on any machine


@pytest.mark.parametrize(
    ("cost_us", "half_width_us", "verdict"),
    [
        (12.0, 3.0, "Watching costs at most 20 µs a step here."),
        (12.0, 9.0, "Not shown to cost at most 20 µs a step here: a loop. Other work"),
        (25.0, 1.0, "Not shown to cost at most 20 µs a step here: a loop. Other work"),
    ],
)
def test_the_verdict_counts_the_whole_interval(cost_us, half_width_us, verdict):
    cost = overhead.Cost("a loop", 4.0, cost_us, half_width_us, 9)
    assert overhead.verdict([cost]).startswith(verdict)
    assert cost.sentence() == (
        f"a loop: {cost_us:.1f} ± {half_width_us:.1f} µs of a step of 4.00 ms ({cost_us / 4e3:.2%}; 9 pairs of blocks)"
    )
    assert json.loads(overhead.as_json([cost]))["costs"][0]["cost_us"] == cost_us
