"""Matching two sequences: as many elements stay as in a longest common subsequence."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tracekit.lines.shortest_edit import matched

WORDS = st.lists(st.integers(0, 3), max_size=14)


def longest(one, other):
    """The length of a longest common subsequence, by the textbook algorithm."""
    lengths = [[0] * (len(other) + 1) for _ in range(len(one) + 1)]
    for i, a in enumerate(one):
        for j, b in enumerate(other):
            lengths[i + 1][j + 1] = lengths[i][j] + 1 if a == b else max(lengths[i][j + 1], lengths[i + 1][j])
    return lengths[-1][-1]


@given(WORDS, WORDS)
def test_what_stays_is_common_in_order_and_most(one, other):
    a, b = matched(np.array(one, np.int64), np.array(other, np.int64))
    assert [one[k] for k in a] == [other[k] for k in b]
    assert (np.diff(a) > 0).all()
    assert (np.diff(b) > 0).all()
    if len(one) and len(other):
        assert len(a) == longest(one, other)


def test_equal_sequences_match_as_a_whole():
    one = np.arange(5)
    assert all((side == one).all() for side in matched(one, one))


def test_a_loss_in_the_middle():
    a, b = matched(np.array([1, 2, 3, 4, 5]), np.array([1, 2, 4, 5]))
    assert (a.tolist(), b.tolist()) == ([0, 1, 3, 4], [0, 1, 2, 3])
