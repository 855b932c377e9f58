"""Rounds keep their budget, and say truly how long they will take."""

import random
import re
from types import SimpleNamespace

import pytest
from msgspec.structs import replace
from simulated import STEP_NS, measured, one_pass

from tracekit.capture import rounds, turns
from tracekit.capture.job import PassResult
from tracekit.capture.live import NoTurnsError
from tracekit.capture.options import Options
from tracekit.capture.rounds import Rounds
from tracekit.capture.turns import Turns
from tracekit.run import Requested, Run, Variant

STARTING, TURNS, PASSING = 2, 3, 4  # seconds: until the processes of a round are ready, its turns, and one of passes
AHEAD = 3  # rounds that take turns together


class Machine:
    """Its clock, and rounds of turns that take time."""

    def __init__(self, refuses=False):
        self.now_s, self.taken, self.refuses, self.rng = 1000.0, [], refuses, random.Random(1)

    def take(self, number, variants, ends, rounds, known):
        self.ends = ends
        numbers = range(number, number + min(AHEAD, rounds))
        self.turns_s, self.ready_s = TURNS, STARTING
        self.now_s += len(numbers) * STARTING
        if self.refuses:
            raise NoTurnsError("it has a thread of its own")
        self.now_s += len(numbers) * TURNS
        self.taken += numbers
        return {each: {variant.name: self._passed(each) for variant in variants} for each in numbers}

    def pass_again(self, number, *_, **__):
        self.now_s += PASSING / 2
        return self._passed(number)

    def _passed(self, number):
        step_ns = round(STEP_NS * self.rng.uniform(0.7, 1.4))
        return PassResult(measured=measured(one_pass(number, step_ns, round(self.now_s * 1e9))))


def taken(monkeypatch, machine, budget):
    """How long the rounds took, and after how long each estimate was told, with the estimate, s."""
    monkeypatch.setattr(rounds, "time", SimpleNamespace(monotonic=lambda: machine.now_s))
    monkeypatch.setattr(rounds, "measure_again", machine.pass_again)
    began, told = machine.now_s, []

    def tell(line):
        if left := re.search(r"about (\d+) s left", line):
            told.append((machine.now_s - began, int(left[1])))

    variants = [
        Variant(name=name, outcome="ok", requested=Requested(compile=False), measured=measured(one_pass(0, STEP_NS, 0)))
        for name in ("a", "b")
    ]
    run = Run(created="", tracekit="", recipe="", script="", variants=variants)
    prepared = SimpleNamespace(variants=[SimpleNamespace(name="a"), SimpleNamespace(name="b")])
    options = Options("", budget=budget, passes=100, tell=tell)
    for _ in Rounds(prepared, None, {"a": None, "b": None}, options, machine).runs(run):
        pass
    return machine.now_s - began, told


@pytest.mark.parametrize(("budget", "rounds_taken"), [(10, 2), (16, 3), (22, 4), (26, 5), (60, 12)])
def test_rounds_fill_a_budget_and_none_exceeds_it(monkeypatch, budget, rounds_taken):
    machine = Machine()
    seconds, _ = taken(monkeypatch, machine, budget)
    assert machine.taken == [*range(1, rounds_taken + 1)]
    assert seconds <= budget


def test_two_rounds_are_taken_whatever_they_take(monkeypatch):
    machine = Machine()
    assert taken(monkeypatch, machine, 5) == (2 * (STARTING + TURNS), [])
    assert machine.taken == [1, 2]
    assert machine.ends == 1000 + 5


@pytest.mark.parametrize(("ends_s", "turns_taken"), [(1000, 2), (1003, 3), (2000, 4)])
def test_on_a_busy_machine_turns_end_with_the_budget_but_for_the_fewest(monkeypatch, ends_s, turns_taken):
    """Each turn takes half a second."""
    machine = Machine()

    class Live:
        def __init__(self):
            self.taken, self.is_waiting = 0, True

        def take_turn(self, turn_ns):
            machine.now_s += 0.5
            self.taken += 1

        def end(self, traced):
            pass

    monkeypatch.setattr(turns, "time", SimpleNamespace(monotonic=lambda: machine.now_s))
    live = [Live(), Live()]
    prepared = SimpleNamespace(is_script=False, run=SimpleNamespace(device="cpu", environment={}))
    Turns(prepared, None, {}, Options(""))._take_turns({1: live}, ends_s)
    assert [each.taken for each in live] == [turns_taken] * 2


def test_rounds_that_live_together_take_turns_as_their_processes_do(monkeypatch):
    """So the turns of each lie far apart; which process of a round comes first changes from one to the next."""
    taken = []

    class Live:
        is_waiting = True

        def __init__(self, name):
            self.name = name

        def take_turn(self, turn_ns):
            taken.append(self.name)

        def end(self, traced):
            taken.append(f"{self.name} ends")

    prepared = SimpleNamespace(is_script=False, run=SimpleNamespace(device="cpu", environment={}))
    rounds_of_two = {number: [Live(f"a{number}"), Live(f"b{number}")] for number in (1, 2)}
    Turns(prepared, None, {}, Options(""))._take_turns(rounds_of_two, 1e12)
    first, second = ["a1", "b1", "a2", "b2"], ["b1", "a1", "b2", "a2"]
    assert taken[:16] == [*first, *second] * 2
    assert taken[16:] == [f"{name} ends" for name in first]


def test_the_time_left_comes_true(monkeypatch):
    seconds, told = taken(monkeypatch, Machine(), 60)
    assert len(told) == 3  # after each time that rounds took turns together
    assert [after + left for after, left in told] == pytest.approx([seconds] * 3, rel=0.1)


def test_where_turns_are_refused_the_passes_in_their_place_count(monkeypatch):
    seconds, told = taken(monkeypatch, Machine(refuses=True), 33)
    assert seconds == AHEAD * STARTING + 6 * PASSING
    assert [after + left for after, left in told] == [seconds] * 5


def test_what_will_be_seen_depends_on_the_number_of_pairs(monkeypatch):
    """More seconds are more pairs, and so is less to compile; a single variant has nobody to differ from."""
    monkeypatch.setattr(rounds, "usable_cores", lambda: 2)
    took = replace(measured(one_pass(0, STEP_NS, 0)), compile_ns=60_000_000_000)

    def run_of(*sides):
        variants = [Variant(name=f"{at}", outcome="ok", requested=Requested(compile=False), measured=side)
                    for at, side in enumerate(sides)]  # fmt: skip
        return Run(created="", tracekit="", recipe="", script="", variants=variants)

    quick = replace(took, compile_ns=0)
    short, long, warm = (
        rounds.visible(run_of(took, side), seconds, 100) for side, seconds in ((took, 60), (took, 240), (quick, 60))
    )
    assert 0.01 < warm < short < 0.5
    assert 0.01 < long < short
    assert rounds.visible(run_of(took), 30, 100) is None
