"""A lane against its naive twin: coverage to the nanosecond, no event lost, rows on which nothing overlaps."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.timeline import lane_twin as twin
from tracekit.timeline import NONE, Lane
from tracekit.timeline.lane import sublanes

TIMES = st.integers(0, 60)


@st.composite
def events(draw: st.DrawFn, most: int = 40) -> list[twin.Event]:
    """Events that may overlap, touch, coincide or take no time, in order of their starts."""
    starts = draw(st.lists(TIMES, max_size=most))
    made = [(start, start + draw(st.integers(0, 12)), draw(st.integers(0, 3))) for start in starts]
    return sorted(made, key=lambda event: (event[0], -event[1]))


def lane_of(made: list[twin.Event]) -> Lane:
    start, end, kind = (np.array(column, np.int64) for column in zip(*made, strict=True)) if made else [np.zeros(0)] * 3
    return Lane.of(
        start.astype(np.int64), end.astype(np.int64), np.arange(len(made), dtype=np.int32), kind.astype(np.int8)
    )


@given(events(), st.lists(st.integers(-5, 80), min_size=2, max_size=12, unique=True).map(sorted))
def test_columns_are_exact(made: list[twin.Event], edges: list[int]) -> None:
    lane, shown = lane_of(made), twin.clipped(made)
    columns = lane.columns(np.array(edges, np.int64))
    at = np.arange(len(edges) - 1)
    named = columns.event(at, at + 1)
    for position, (covered, present) in enumerate(twin.columns(shown, edges)):
        category, event, filling = int(columns.category[position]), int(named[position]), int(columns.filling[position])
        assert columns.covered_ns[position] == sum(covered.values())
        assert (category == NONE) == (event == NONE) == (not present)
        if covered:
            assert covered[category] == max(covered.values())
        if present:
            assert event in present
        low, high = edges[position : position + 2]
        inside = [max(min(end, high) - max(start, low), 0) for start, end, _ in shown]
        assert filling == next((number for number, dur in enumerate(inside) if 2 * dur > high - low), NONE)


@given(events(), st.lists(st.integers(-5, 80), min_size=1, max_size=8).map(sorted))
def test_time_before_a_moment_is_exact_for_each_category(made: list[twin.Event], moments: list[int]) -> None:
    lane, shown = lane_of(made), twin.clipped(made)
    for category in range(5):
        expected = [
            sum(max(min(end, at) - start, 0) for start, end, kind in shown if kind == category) for at in moments
        ]
        assert lane.before(np.array(moments, np.int64), category).tolist() == expected


@given(st.lists(st.integers(0, 9), max_size=700), st.data())
def test_the_longest_of_any_range_is_named(durations: list[int], data: st.DataObject) -> None:
    lane = lane_of([(10 * position, 10 * position + dur, 0) for position, dur in enumerate(durations)])
    bounds = st.integers(0, len(durations))
    asked = data.draw(st.lists(st.tuples(bounds, bounds), max_size=6))
    first, beyond = (np.array(column, np.int64) for column in zip(*asked, strict=True)) if asked else [np.zeros(0)] * 2
    answer = lane.longest(first, beyond).tolist()
    for (low, high), position in zip(asked, answer, strict=True):
        assert (position == NONE) == (low >= high)
        if position != NONE:
            assert low <= position < high
            assert durations[position] == max(durations[low:high])


@given(events(), st.integers(1, 4))
def test_each_event_lies_on_the_first_row_that_is_free(made: list[twin.Event], most: int) -> None:
    start, end = (np.array([event[k] for event in made], np.int64) for k in (0, 1))
    assert [rows.tolist() for rows in sublanes(start, end, most)] == twin.first_fit(made, most)


def test_nested_events_lie_at_their_depth() -> None:
    made = [(0, 100, 0), (10, 40, 0), (20, 30, 0), (50, 90, 0), (100, 120, 0)]
    start, end = (np.array([event[k] for event in made], np.int64) for k in (0, 1))
    assert [rows.tolist() for rows in sublanes(start, end, 8)] == [[0, 4], [1, 3], [2]]


def test_one_short_event_among_thousands_is_in_the_picture() -> None:
    starts = np.arange(5000, dtype=np.int64) * 100
    ends = starts + 1
    ends[1234] = starts[1234] + 2  # the longest
    lane = Lane.of(starts, ends, np.arange(5000, dtype=np.int32), np.zeros(5000, np.int8))
    columns = lane.columns(np.array([0, 500_000]))
    event = columns.event(np.array([0]), np.array([1]))
    assert (event.tolist(), columns.covered_ns.tolist()) == ([1234], [5001])


def test_what_covers_a_moment() -> None:
    lane = lane_of([(10, 20, 0), (20, 25, 1), (30, 30, 2)])
    assert [lane.at(moment) for moment in (9, 10, 19, 20, 25, 30)] == [NONE, 0, 0, 1, NONE, NONE]
