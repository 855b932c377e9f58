"""The search in C against NumPy's: the same places for any points."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracekit import native
from tracekit.intervals import place_among

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
