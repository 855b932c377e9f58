"""Recordings with damage that was seen in the field, and one that only looks damaged, with their truth."""

from pathlib import Path

import numpy as np
import pytest
from real import TRACES

from tracekit.engine import Attribution, attribute
from tracekit.engine.buckets import ON_THE_GPU, WALL
from tracekit.trace import Trace

CASES = TRACES.parent / "cases"


def attributed(name: str) -> Attribution:
    path: Path = CASES / name / "trace.json"
    if not path.is_file():
        pytest.skip(f"the cases are not here ({CASES})")
    return attribute(Trace.load(path, use_cache=False))


def busy_ns(attribution: Attribution) -> list[int]:
    busy: list[int] = attribution.wall[:, [WALL.index(key) for key in ON_THE_GPU]].sum(axis=1).tolist()
    return busy


def test_impossible_durations_end_where_their_stream_goes_on() -> None:
    """Every kernel takes 0.4 ms, 20 a step; three last seconds, of which one is the last of the recording."""
    attribution = attributed("impossible_durations")
    impossible = attribution.trace.impossible
    assert len(impossible.shortened) == 2  # nothing that ends before it starts after the last
    assert sorted(impossible.recorded_ns.tolist()) == [1_500_000_000, 1_620_000_000]
    assert (attribution.trace.dur_ns[impossible.shortened] <= 500_000).all()
    assert attribution.trace.events["dur_ns"].to_pylist() == attribution.trace.dur_ns.tolist()
    assert max(attribution.wall_ns[:-1]) <= 10_500_000


def test_an_overlap_on_one_stream_is_real() -> None:
    """30 kernels a step of 2 ms, one every 50 µs, each 53 µs long."""
    attribution = attributed("overlap_on_one_stream")
    trace = attribution.trace
    assert not len(trace.impossible.shortened)
    assert len(trace.where(lambda part: part.roles.gpu)) == 90
    assert busy_ns(attribution) == [1_503_000] * 3


def test_kernels_in_another_clock_have_no_wall_time() -> None:
    """40 kernels of 75 µs, 54 years after their launches."""
    attribution = attributed("kernels_in_another_clock")
    trace = attribution.trace
    assert trace.impossible.two_clocks
    assert "clock" in attribution.cannot_answer["wall"]
    assert not attribution.wall_known.any()
    assert attribution.host_ns.max() < 1_000_000_000
    assert trace.dur_ns[trace.where(lambda part: part.roles.gpu)].tolist() == [75_000] * 40


def test_a_host_far_ahead_issues_steps_that_the_gpu_takes_long_for() -> None:
    """The host issues 5 steps in 30 ms each; the GPU needs 200 ms for each and is busy for 99.75 % of it."""
    attribution = attributed("host_far_ahead")
    assert attribution.host_ns.tolist() == [30_000_000] * 5
    assert np.abs(attribution.wall_ns - 200_000_000).max() <= 2_000_000
    shares = np.array(busy_ns(attribution)[1:]) / attribution.wall_ns[1:]
    assert shares.round(4).tolist() == [0.9975] * 4
