"""Marks of lines: in C and in Python, they are the same for any sequence of reports."""

import inspect
import struct
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracekit.capture.child.plain_marks import PlainMarks

native = pytest.importorskip("tracekit.native._marks", reason="what is written in C was not built")


def first():
    return 1


def second():
    yield 2


async def third():
    return 3


def foreign():
    return 4


CODES = [function.__code__ for function in (first, second, third, foreign)]
DISABLE = object()
REPORTS = st.lists(
    st.tuples(
        st.sampled_from(["started", "line", "left", "yielded", "resumed", "next_step"]),
        st.integers(0, len(CODES) - 1),
        st.integers(1, 3),
        st.sampled_from([1, 40, 5_000]),
    ),
    max_size=120,
)


def claims(code):
    return code is not foreign.__code__


def told(kind, reports):
    """What it answers to each report, and all marks in the end."""
    after, waits, moments = [], [1], count()

    def clock():
        return next(moments) * 10 + sum(waits)

    marks = kind(claims, DISABLE, 4, 100, clock)
    marks.runs(CODES[0], 7)
    for name, index, line, wait in reports:
        waits.append(wait)
        if name == "next_step":
            after.append(marks.next_step())
        elif name == "line":
            # The interpreter reports lines of the user's code only.
            after.append(marks.line(CODES[index % 3], line))
        elif name in ("left", "yielded"):
            after.append(getattr(marks, name)(CODES[index % 3], 0, None))
        else:
            after.append(getattr(marks, name)(CODES[index], 0))
    packed, places, threads = marks.taken()
    assert len(threads) == 1
    return after, rows(packed, places)


def rows(packed, places):
    """Each mark: when, the place, and whether it is off from then on."""
    return [
        (ns, places[place] if place >= 0 else None, is_off)
        for ns, place, _, is_off in struct.iter_unpack("qiii4x", packed)
    ]


@given(REPORTS)
def test_both_take_the_same_marks(reports):
    ours, theirs = told(native.Marks, reports), told(PlainMarks, reports)
    assert [_comparable(each) for each in ours[0]] == [_comparable(each) for each in theirs[0]]
    assert ours[1] == theirs[1]


def _comparable(answer):
    return {*map(id, answer)} if isinstance(answer, list) else answer


def test_a_line_of_a_hot_loop_is_reported_no_more_until_the_next_step():
    ticks = count(0, 10)
    marks = native.Marks(claims, DISABLE, 4, 100, lambda: next(ticks))
    answers = [marks.line(CODES[0], 1) for _ in range(6)]
    assert answers == [None] * 4 + [DISABLE] * 2
    assert marks.next_step() == [CODES[0]]
    assert marks.line(CODES[0], 1) is None
    assert marks.next_step() == []


def test_a_coroutine_that_waits_keeps_its_line():
    assert third.__code__.co_flags & inspect.CO_COROUTINE
    ticks = count()
    marks = native.Marks(claims, DISABLE, 4, 100, lambda: next(ticks))
    marks.runs(CODES[0], 7)
    marks.started(CODES[2], 0)
    marks.line(CODES[2], 2)
    marks.yielded(CODES[2], 0, None)
    marks.resumed(CODES[2], 0)
    marks.left(CODES[2], 0, None)
    packed, places, _ = marks.taken()
    at = [place for _, place, _ in rows(packed, places)]
    assert at == [(CODES[0], 7), (CODES[2], 2), (CODES[2], 2), (CODES[0], 7)]


@pytest.mark.parametrize("kind", [native.Marks, PlainMarks])
def test_code_without_a_hash_is_marked(kind):
    code = first.__code__.replace(co_consts=(None, [1]))  # as Dynamo makes some
    with pytest.raises(TypeError, match="unhashable"):
        hash(code)
    marks = kind(lambda _: True, DISABLE, 4, 100)
    marks.started(code, 0)
    marks.line(code, 1)
    assert [place for _, place, _ in rows(*marks.taken()[:2])] == [(code, 1)]
