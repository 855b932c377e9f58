"""The sweep in C against the one in Python: the same times for any nodes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracekit import native
from tracekit.engine.dependencies import ACTIVITY, HANDOVER
from tracekit.engine.replay import _in_python, _sweep

pytestmark = pytest.mark.skipif(not native.BUILT, reason="the sweep was not built: there is no compiler")
THREADS = 3
NUMBERS = st.integers(-50, 50)


@st.composite
def nodes(draw):
    """The columns of a sweep: dependencies are of nodes before, times are anything."""
    columns = []
    for node in range(draw(st.integers(0, 12))):
        kind = draw(st.sampled_from(range(ACTIVITY + 1)))
        thread = -1 if kind == ACTIVITY else draw(st.integers(0, THREADS - 1))
        launch, source, before = (draw(st.integers(-1, node - 1)) for _ in range(3))
        if kind == HANDOVER:
            source = draw(st.integers(0, THREADS - 1))
        gap, clock, since, own, dur, delay, latency, stream_gap = (draw(NUMBERS) for _ in range(8))
        columns.append(
            [kind, thread, launch, source, gap, clock, since, own, abs(dur), before, delay, latency, stream_gap]
        )
    return list(np.array(columns, np.int64).reshape(-1, 13).T)


@given(nodes())
def test_both_say_the_same(columns):
    fast, plain = _sweep(THREADS, columns), _in_python(THREADS, columns)
    assert (fast.start.tolist(), fast.end.tolist(), fast.after.tolist()) == (
        plain.start.tolist(),
        plain.end.tolist(),
        plain.after.tolist(),
    )


@pytest.mark.parametrize(("column", "number"), [(1, 7), (1, -1), (2, 9), (3, -2), (9, 5)])
def test_a_node_that_does_not_exist_is_refused(column, number):
    columns = [np.zeros(2, np.int64) for _ in range(13)]
    columns[0][:] = ACTIVITY if column in (2, 3) else 0
    columns[column][1] = number
    with pytest.raises(ValueError, match="no such node or thread"):
        _sweep(1, columns)
