"""The level of steps in C is that in Python."""

import random

import pytest

from tracekit.watched.usual import Levels, PlainLevels, Usual

if Levels is PlainLevels:
    pytest.skip("nothing is compiled here", allow_module_level=True)


@pytest.mark.parametrize("seed", range(20))
def test_levels_are_the_same(seed):
    draw = random.Random(seed)
    kinds = [1, 2, 1_000_000, 90_000_000, 2**53] if seed % 2 else [draw.randrange(1, 10**9)]
    compiled, plain = Levels(), PlainLevels()
    for _ in range(60):
        durations = [
            draw.choice(kinds) + draw.randrange(0, 3) * draw.randrange(-1, 2) for _ in range(draw.randrange(70))
        ]
        durations = [min(max(step_ns, 0), 2**53) for step_ns in durations]
        comparable = draw.random() < 0.8
        compiled.take_in(durations, comparable)
        plain.take_in(durations, comparable)
        assert compiled.level_ns == plain.level_ns
        assert compiled.factor == pytest.approx(plain.factor, rel=1e-12, abs=1e-12)


def test_what_is_no_list_of_durations_is_refused():
    levels = Levels()
    for wrong in ((1, 2), ["a"], [None], [2**2000]):
        with pytest.raises((TypeError, OverflowError)):
            levels.take_in(wrong, True)
    levels.take_in([5], True)
    assert levels.level_ns == 5


def test_steps_learnt_from_are_read_when_they_are_asked_for():
    from tests.watched.planted_steps import a_step

    steps = [a_step(number, waited_ns=number) for number in range(64)]
    usual = Usual(steps.__getitem__)
    usual.learn(range(64), [step.step_ns for step in steps])
    steps[:] = [a_step(number, waited_ns=7) for number in range(64)]
    assert usual.typical.waited_ns == 7
