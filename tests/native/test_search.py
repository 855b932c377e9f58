"""The searches in C against NumPy's: the same places and the same cover for any points."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracekit import native
from tracekit.base.intervals import Union, place_among

pytestmark = pytest.mark.skipif(not native.BUILT, reason="the search was not built: there is no compiler")
EXTREMES = {kind: (np.iinfo(kind).min, np.iinfo(kind).max) for kind in (np.int32, np.int64)}


@st.composite
def lookups(draw):
    """Ascending values with ties, and points in any order, often ascending."""
    kind = draw(st.sampled_from((np.int32, np.int64)))
    numbers = st.integers(-8, 8) | st.sampled_from(EXTREMES[kind])
    points = draw(st.lists(numbers, max_size=40))
    points = sorted(points) if draw(st.booleans()) else points
    return np.array(sorted(draw(st.lists(numbers, max_size=40))), kind), np.array(points, kind)


@given(lookup=lookups(), after=st.booleans())
def test_both_find_the_same(lookup, after):
    values, points = lookup
    places = place_among(values, points, after)
    assert places.tolist() == np.searchsorted(values, points, "right" if after else "left").tolist()


@pytest.mark.parametrize("kinds", [(np.int32, np.int64), (np.int8, np.int8), (np.float64, np.float64)])
def test_other_columns_are_searched_all_the_same(kinds):
    values, points = np.arange(5).astype(kinds[0]), np.array([3, 1, 9]).astype(kinds[1])
    assert place_among(values, points).tolist() == [3, 1, 5]


@pytest.mark.parametrize(("points", "width", "places"), [(2, 4, 2), (2, 3, 2), (2, 8, 1)])
def test_columns_that_do_not_fit_are_refused(points, width, places):
    with pytest.raises(ValueError, match="widths or lengths"):
        native._loops.search(
            np.zeros(3, np.int64), np.zeros(points, np.int64), width, False, np.zeros(places, np.int64)
        )


@st.composite
def unions(draw):
    edges = sorted(draw(st.sets(st.integers(-30, 30), max_size=20)))
    edges = np.array(edges[: len(edges) // 2 * 2], np.int64)
    return Union(edges[::2], edges[1::2])


@given(union=unions(), stretches=st.lists(st.tuples(st.integers(-40, 40), st.integers(-40, 40)), max_size=30))
def test_both_cover_as_much(union, stretches):
    lows, highs = np.array(stretches, np.int64).reshape(-1, 2).T
    assert union.within(lows, highs).tolist() == union._within_in_numpy(lows, highs).tolist()


def test_stretches_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="different lengths"):
        native._loops.cover(*(np.zeros(length, np.int64) for length in (2, 2, 3, 3, 2)))
