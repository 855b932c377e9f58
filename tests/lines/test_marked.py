"""Lines that the interpreter marked: they are exact, in the trace itself, and come before all else that is known."""

import gzip
from itertools import pairwise

import msgspec
import numpy as np
import pytest
from small import event, kernel, launch, op, step, write

from tests.lines.owner_twin import adds_up, agrees
from tests.lines.recorded import call, of_lines, recorded, with_lines
from tracekit.capture.child.hot_loops import MOST_ARRIVALS, Row, told
from tracekit.engine import attribute
from tracekit.lines.ownership import Ownership
from tracekit.trace import Trace
from tracekit.vocabulary import lines_file
from tracekit.vocabulary.lines_file import lines_path, marked_path

CODE = (lambda: None).__code__
OTHER = (lambda: 1).__code__


def ownership_of(trace, detail=None):
    return Ownership.of(attribute(Trace.load(trace)), detail)


def steady(path, marks, *more, **known):
    """Two operators in a step of 100 µs, and its marks."""
    trace = write(path, step(5, 0, 100), op("aten::mm", 20, 40), op("aten::add", 60, 80), *more)
    return with_lines(trace, {}, marks, **known)


def test_marks_alone_tell_the_lines(tmp_path):
    ownership = ownership_of(steady(tmp_path / "s.json", {0: 2, 50: 3, 90: 0}))
    assert ownership.reason is None
    adds_up(ownership)
    assert of_lines(ownership) == {2: 50, 3: 40}


def test_marks_in_the_trace_come_before_its_recording(tmp_path):
    detail = recorded(tmp_path / "d.json")
    ownership = ownership_of(steady(tmp_path / "s.json", {0: 5, 50: 6, 100: 0}), detail)
    adds_up(ownership)
    assert of_lines(ownership) == {5: 50, 6: 50}


def test_marks_of_other_steps_are_read_between_operators(tmp_path):
    trace = write(tmp_path / "s.json", step(5, 0, 200), op("aten::mm", 40, 80), op("aten::add", 120, 160))
    steady(marked_path(trace), {0: 2, 50: 3, 90: 4, 100: 0})
    ownership = ownership_of(trace)
    adds_up(ownership)
    # Twice as fast there: line 3 begins in the middle between the operators, and line 4 in that behind them.
    assert of_lines(ownership) == {2: 100, 3: 80, 4: 20}
    assert sum(ownership.costs["wall"].divided_ns.tolist()) == 80_000


def test_a_mark_on_another_thread_says_nothing_of_this_one(tmp_path):
    ownership = ownership_of(steady(tmp_path / "s.json", {0: 2, 100: 0}, thread=99))
    assert of_lines(ownership) == {}


def test_only_loops_are_estimated(tmp_path):
    trace = steady(tmp_path / "s.json", {0: 2, 50: 3, 60: 4, 80: 2, 100: 0}, estimated={50, 60})
    costs = ownership_of(trace).costs["wall"]
    assert costs.divided_ns.sum() == 30_000


def test_a_kernel_is_for_the_line_that_launched_it(tmp_path):
    gpu = launch(30, 35, 1), kernel("gemm", 40, 95, 1)
    ownership = ownership_of(steady(tmp_path / "s.json", {0: 2, 32: 3, 100: 0}, *gpu))
    assert of_lines(ownership)[2] > 50


def test_code_of_the_users_in_a_backward_node_keeps_its_line(tmp_path):
    node = "autograd::engine::evaluate_function: MulBackward0"
    numbered = event("cpu_op", "aten::mul", 10, 20, **{"Sequence number": 3, "Fwd thread id": 0})
    backward = event("cpu_op", node, 50, 90, **{"Sequence number": 3, "Fwd thread id": 1})
    trace = write(tmp_path / "s.json", step(5, 0, 100), numbered, backward)
    ownership = ownership_of(with_lines(trace, {}, {0: 2, 45: 4, 60: 7, 70: 4, 100: 0}))
    adds_up(ownership)
    # Line 2 multiplies; line 4 calls `backward`, whose node is line 2's but for a hook on line 7.
    assert of_lines(ownership) == {2: 45 + 30, 4: 5 + 10, 7: 10}


@pytest.mark.parametrize("seed", range(8))
def test_the_slow_twin_agrees_on_any_marks(tmp_path, seed):
    rng = np.random.default_rng(seed)
    marks = {int(at): int(rng.integers(0, 5)) for at in sorted(rng.choice(np.arange(100), 9, replace=False))}
    node = "autograd::engine::evaluate_function: MulBackward0"
    events = [
        call("mine.py(1): work", 0, 100),
        event("cpu_op", "aten::mul", 10, 20, **{"Sequence number": 3, "Fwd thread id": 0}),
        event("cpu_op", node, 50, 90, **{"Sequence number": 3, "Fwd thread id": 1}),
    ]
    trace = with_lines(write(tmp_path / "d.json", step(0, 0, 100), *events), {}, marks)
    ownership = ownership_of(trace)
    adds_up(ownership)
    agrees(ownership, 40)


@pytest.mark.parametrize(
    "marks",
    [[[1, 5, 1]], [[1, -2, 1]], [[-1, 0, 1]], [[1, 0, 1, 2]], [["1", 0, 1]]],
    ids=["no such place", "below none", "before time", "no flag", "text"],
)
def test_a_lines_file_that_does_not_fit_is_none(tmp_path, marks):
    trace = steady(tmp_path / "s.json", {0: 2, 100: 0})
    content = msgspec.json.decode(gzip.decompress(lines_path(trace).read_bytes()))
    lines_path(trace).write_bytes(gzip.compress(msgspec.json.encode({**content, "marks": marks})))
    assert lines_file.read(trace) is None


def loop(began, rounds, places, each, until, hot=MOST_ARRIVALS):
    """The rows of a loop of these places, which are off after so many arrivals, and the moment of its end."""
    at, rows, seen = began, [], dict.fromkeys(places, 0)
    for _ in range(rounds):
        for place, took in zip(places, each, strict=True):
            seen[place] += 1
            if seen[place] <= hot + 1:
                rows.append(Row(at, place, 0, int(seen[place] == hot + 1)))
            at += took
    return [*rows, Row(at, until, 0, 0)]


def took(rows, places):
    """What each place took by the marks."""
    marks, total = told(rows, places, 1), {}
    for mark, after in pairwise(marks):
        total[mark.place] = total.get(mark.place, 0) + after.ns - mark.ns
    return total


def test_the_lines_of_a_loop_share_its_time():
    rows = [Row(0, 0, 0, 0), *loop(100, 1000, (1, 2), (10, 30), until=3), Row(41_000, 0, 0, 0)]
    costs = took(rows, [(CODE, 5), (CODE, 6), (CODE, 7), (CODE, 8)])
    assert costs == pytest.approx({0: 100, 1: 10_000, 2: 30_000, 3: 900}, rel=0.02)


def test_a_loop_in_a_loop_has_the_time_that_its_first_line_takes_beyond_its_own():
    rows, at = [], 0
    for outer in range(40):  # the inner loop has no marks after the first round of the outer one
        inner = loop(at + 50, 500, (1, 2), (10, 30), until=0)
        rows += [Row(at, 0, 0, 0), *(inner[:-1] if not outer else [])]
        at = inner[-1].ns
    costs = took([*rows, Row(at, 3, 0, 0)], [(CODE, 5), (CODE, 6), (CODE, 7), (CODE, 8)])
    assert costs == pytest.approx({0: 40 * 50, 1: 40 * 5_000, 2: 40 * 15_000}, rel=0.05)


def test_one_loop_after_another_keeps_its_own_time():
    first = loop(0, 1000, (0, 1), (10, 30), until=2)
    second = loop(first[-1].ns + 10, 1000, (3,), (20,), until=4)
    costs = took([*first, *second], [(CODE, line) for line in range(5, 10)])
    assert costs == pytest.approx({0: 10_000, 1: 30_000, 2: 10, 3: 20_000}, rel=0.02, abs=1)


def test_a_function_whose_loop_is_off_has_its_shares():
    first = loop(0, 500, (1, 2), (10, 30), until=0)
    again = [Row(first[-1].ns + 100, 3, 0, 1), Row(first[-1].ns + 20_100, 0, 0, 0)]
    places = [(CODE, 5), (OTHER, 1), (OTHER, 2), (OTHER, 0)]
    costs = took([*first, *again], places)
    assert costs == pytest.approx({0: 100, 1: 10_000, 2: 30_000}, rel=0.02)
