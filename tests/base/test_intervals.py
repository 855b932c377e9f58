"""Each operation compared with the simplest loop that computes the same."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracekit import native
from tracekit.base.intervals import StepFunction, Union, _in_python, cuts, distinct, occurring, paint, runs, topmost

spans = st.lists(st.tuples(st.integers(-50, 50), st.integers(0, 30)).map(lambda s: (s[0], s[0] + s[1])), max_size=25)


def columns(intervals):
    return (
        np.array([start for start, _ in intervals], np.int64),
        np.array([end for _, end in intervals], np.int64),
    )


def points(starts, ends):
    return {t for start, end in zip(starts, ends, strict=True) for t in range(start, end)}


@given(spans, st.integers(-60, 60), st.integers(0, 60))
def test_union(intervals, low, length):
    starts, ends = columns(intervals)
    union = Union.of(starts, ends)
    live = points(starts.tolist(), ends.tolist())
    assert points(union.starts.tolist(), union.ends.tolist()) == live
    assert union.total() == len(live)
    assert (union.ends > union.starts).all()
    assert (union.starts[1:] > union.ends[:-1]).all()
    at = np.arange(-60, 90)
    assert union.covers(at).tolist() == [int(t) in live for t in at]
    window = set(range(low, low + length))
    inside, gaps = union.clip(low, low + length), union.gaps(low, low + length)
    assert points(inside.starts.tolist(), inside.ends.tolist()) == live & window
    assert points(gaps.starts.tolist(), gaps.ends.tolist()) == window - live
    assert union.within(np.array([low]), np.array([low + length])).tolist() == [len(live & window)]


@given(spans, spans, st.integers(1, 4))
def test_minus_and_common_some_at_a_time(intervals, others, at_a_time):
    union, other = Union.of(*columns(intervals)), Union.of(*columns(others))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tracekit.base.intervals._AT_A_TIME", at_a_time)
        left, shared = union.minus(other), union.common(other)
    live, covered = (points(each.starts.tolist(), each.ends.tolist()) for each in (union, other))
    for found, expected in ((left, live - covered), (shared, live & covered)):
        assert points(found.starts.tolist(), found.ends.tolist()) == expected
        assert (found.ends > found.starts).all()
        assert (found.starts[1:] > found.ends[:-1]).all()


@given(spans)
def test_topmost_is_the_last_listed_of_those_that_cover(intervals):
    intervals.sort(key=lambda interval: interval[0])
    starts, ends = columns(intervals)
    top = topmost(starts, ends)
    for t in range(-60, 90):
        covering = [k for k, (start, end) in enumerate(intervals) if start <= t < end]
        assert top.at(np.array([t])).tolist() == [covering[-1] if covering else -1]


@pytest.mark.parametrize("paint", [paint, _in_python])
@pytest.mark.parametrize("length", [1, 1023, 1024, 5000])
def test_paint_long_and_short(length, paint):
    rng = np.random.default_rng(length)
    for _ in range(20):
        count = int(rng.integers(0, 60))
        lows = np.sort(rng.integers(0, length, count))
        highs = np.minimum(length, lows + (rng.random(count) ** 4 * length).astype(np.int64))
        canvas = np.full(length, -1)
        for k in range(count):
            canvas[lows[k] : highs[k]] = k
        assert (paint(lows, highs, length) == canvas).all()


def test_steps_outside_of_their_edges():
    steps = StepFunction(np.array([0, 10, 20]), np.array([1, 2]), outside=-7)
    assert steps.at(np.array([-1, 0, 9, 10, 19, 20])).tolist() == [-7, 1, 1, 2, 2, -7]
    assert StepFunction(np.zeros(0, np.int64), np.zeros(0, np.int64)).at(np.array([3])).tolist() == [-1]


def test_small_ones():
    assert distinct(np.array([3, 1, 3])).tolist() == [1, 3]
    assert cuts(np.array([5, 99, -3]), low=0, high=10).tolist() == [0, 5, 10]
    assert runs(np.array([1, 1, 2, 1])).tolist() == [0, 2, 3, 4]
    assert runs(np.zeros(0, np.int64)).tolist() == [0]


@given(st.lists(st.integers(-1, 9) | st.integers(0, 1 << 40), max_size=30))
def test_codes_that_occur(codes):
    distinct_codes, index = occurring(np.array(codes, np.int64))
    assert distinct_codes.tolist() == sorted(set(codes))
    assert distinct_codes[index].tolist() == codes


@pytest.mark.skipif(not native.BUILT, reason="there is no compiler")
@pytest.mark.parametrize(("low", "high"), [(-1, 2), (0, 4)])
def test_nothing_is_painted_outside(low, high):
    with pytest.raises(ValueError, match="outside"):
        paint(np.array([low]), np.array([high]), 3)
