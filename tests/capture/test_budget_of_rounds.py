"""Rounds keep their budget, and say truly how long they will take, though some make processes ready for others."""

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
AHEAD, FORKS = 3, 6  # rounds that take turns together, and in all by one process


class Machine:
    """Its clock, and rounds of turns that take time."""

    def __init__(self, refuses=False, starting_parents=0.0):
        self.now_s, self.taken, self.refuses, self.rng = 1000.0, [], refuses, random.Random(1)
        self.starting_parents, self.left = starting_parents, 0

    @property
    def parents_s(self):
        return self.starting_parents if self.taken and self.left < 1 else 0.0

    def take(self, number, variants, ends, rounds, renews, known):
        self.ends = ends
        if not self.taken or (renews and self.left < 1):
            self.now_s, self.left = self.now_s + self.starting_parents, FORKS
        numbers = range(number, number + min(AHEAD, rounds))
        self.turns_s, self.ready_s = TURNS, STARTING
        self.now_s += len(numbers) * STARTING
        if self.refuses:
            raise NoTurnsError("it has a thread of its own")
        self.now_s += len(numbers) * TURNS
        self.left -= len(numbers)
        self.taken += numbers
        return {each: {variant.name: self._passed(each) for variant in variants} for each in numbers}

    def close(self):
        pass

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


@pytest.mark.parametrize("budget", [40, 60, 80])
def test_the_time_of_processes_to_fork_from_is_in_the_budget(monkeypatch, budget):
    machine = Machine(starting_parents=12.0)
    seconds, _ = taken(monkeypatch, machine, budget)
    assert len(machine.taken) > AHEAD
    assert seconds <= 1.1 * budget


def test_time_that_is_too_short_for_new_processes_to_fork_from_is_used(monkeypatch):
    """After six rounds, 15 seconds are left: new processes would have time for none, and old ones have it for three."""
    machine = Machine(starting_parents=12.0)
    seconds, _ = taken(monkeypatch, machine, 12 + 6 * (STARTING + TURNS) + 15)
    assert seconds == 12 + 9 * (STARTING + TURNS)


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


def test_what_will_be_seen_depends_on_the_number_of_pairs():
    """More seconds are more pairs, and so is not to compile in each; a single variant has nobody to differ from."""
    took = replace(measured(one_pass(0, STEP_NS, 0)), compile_ns=20_000_000_000)
    eager, compiled = (
        Variant(name=name, outcome="ok", requested=Requested(compile=False), measured=took) for name in ("a", "b")
    )
    run = Run(created="", tracekit="", recipe="", script="", variants=[eager, compiled])
    short, long, warm = (rounds.visible(run, *each) for each in ((30, 100), (120, 100), (30, 100, False)))
    assert 0.01 < warm < short < 0.3
    assert 0.01 < long < short
    assert rounds.visible(replace(run, variants=[eager]), 30, 100) is None
