"""Python code that calls nothing has its lines, too: where the capture looked them up."""

import sys
import time

import numpy as np
import pytest
from small import op, step, write

from tests.lines.owner_twin import adds_up, agrees
from tests.lines.recorded import call, with_lines
from tracekit.capture.child.event_tree import LineSampler, place_of
from tracekit.engine import attribute
from tracekit.lines.ownership import Ownership
from tracekit.trace import Trace
from tracekit.vocabulary.lines_file import Place

PLACES = (Place(0, [3, 4], [1, 3]), Place(0, [5], [1]))  # a loop, and a line


def of_lines(ownership):
    """What each line costs in all steps, in µs."""
    costs, total = ownership.costs["wall"], {}
    for owner, ns in zip(costs.owner.tolist(), costs.ns.tolist(), strict=True):
        for line in ownership.owners.group_of(owner):
            total[line.line] = total.get(line.line, 0) + ns / 1000
    return total


def sampled(path, *events, calls, samples):
    """A step of 100 µs of `work`, in which it was looked up at these µs."""
    trace = write(path, step(0, 0, 100), call("mine.py(1): work", 0, 100), *events)
    looked_up = {"sample_ns": [1000 * at for at in samples], "sample_place": [*samples.values()]}
    return with_lines(trace, calls, places=[*PLACES], **looked_up)


def test_a_loop_after_a_call_is_not_the_calls(tmp_path):
    slow, fast = call("<built-in function sleep>", 10, 40), call("<built-in function fast>", 80, 100)
    trace = sampled(tmp_path / "d.json", slow, fast, calls={10: 2, 80: 6}, samples={20: 1, 50: 0, 60: 0, 70: 1})
    ownership = Ownership.of(attribute(Trace.load(trace)), None)
    adds_up(ownership)
    agrees(ownership, 60)
    # The sample in the call tells nothing; two saw the loop, until 60, and the last one line 5, until the next call.
    assert of_lines(ownership) == {1: 10, 2: 30, 3: 5, 4: 15, 5: 20, 6: 20}


def test_without_a_sample_the_time_stays_with_the_call(tmp_path):
    slow, fast = call("<built-in function sleep>", 10, 40), call("<built-in function fast>", 80, 100)
    trace = sampled(tmp_path / "d.json", slow, fast, calls={10: 2, 80: 6}, samples={20: 1})
    assert of_lines(Ownership.of(attribute(Trace.load(trace)), None)) == {1: 10, 2: 70, 6: 20}


def test_python_that_ran_more_slowly_while_it_was_recorded_gives_way(tmp_path):
    product = op("aten::mm", 80, 100)
    slow, fast = call("<built-in function sleep>", 10, 40), call("<built-in function mm>", 80, 100)
    detail = sampled(
        tmp_path / "d.json", op("aten::detach", 0, 10), slow, fast, product, calls={10: 2, 80: 6}, samples={50: 0}
    )
    # In the steady step, 50 µs are between the operators: the sleep still takes 30 of them, so the loop takes 20.
    steady = write(tmp_path / "s.json", step(5, 0, 80), op("aten::detach", 0, 10), op("aten::mm", 60, 80))
    costs = of_lines(Ownership.of(attribute(Trace.load(steady)), detail))
    assert costs == pytest.approx({1: 10, 2: 30, 3: 5, 4: 15, 6: 20}, abs=0.01)


@pytest.mark.parametrize("seed", range(8))
def test_the_slow_twin_agrees_on_any_samples(tmp_path, seed):
    rng = np.random.default_rng(seed)
    bounds = sorted(rng.choice(np.arange(1, 100), 8, replace=False).tolist())
    calls = {start: int(rng.integers(1, 6)) for start in bounds[::2]}
    events = [call("<built-in function f>", low, high) for low, high in zip(bounds[::2], bounds[1::2], strict=True)]
    events[0] = call("mine.py(1): work", bounds[0], bounds[1])  # it calls itself
    events += [op("aten::add", bounds[1], bounds[1] + 1)]
    samples = {at: int(rng.integers(0, 2)) for at in sorted(rng.choice(np.arange(100), 12, replace=False).tolist())}
    trace = sampled(tmp_path / "d.json", *events, calls=calls, samples=samples)
    ownership = Ownership.of(attribute(Trace.load(trace)), None)
    adds_up(ownership)
    agrees(ownership, 40)


def looping(until):
    count = 0
    while time.monotonic() < until:
        count += 1
        count *= 1
    return count


def test_the_sampler_sees_the_users_lines_and_leaves_nothing_behind():
    before, sampler = sys.getswitchinterval(), LineSampler()
    sampler.start()
    looping(time.monotonic() + 0.1)
    sampler.stop()
    sampler.stop()  # it has ended
    assert sys.getswitchinterval() == before
    seen = [sample for sample in sampler.samples if sample.code is looping.__code__]
    first = looping.__code__.co_firstlineno
    assert {line for sample in seen for line in place_of(*sample[1:], 0).lines} <= set(range(first, first + 6))
    assert seen
    assert [sample.t_ns for sample in seen] == sorted(sample.t_ns for sample in seen)


def test_a_jump_back_stands_for_its_loop():
    import dis

    jumps = [each for each in dis.get_instructions(summing) if each.opname.startswith("JUMP_BACKWARD")]
    first = summing.__code__.co_firstlineno
    place = place_of(summing.__code__, jumps[-1].offset, 0)
    assert {first + 3, first + 4} <= set(place.lines) <= {first + 2, first + 3, first + 4}
    assert len(place.shares) == len(place.lines)
    plain = next(each for each in dis.get_instructions(summing) if each.opname == "RETURN_VALUE")
    assert place_of(summing.__code__, plain.offset, 0).lines == [first + 5]


def summing(numbers):
    total = 0
    for number in numbers:
        total += number
        total -= 1
    return total
