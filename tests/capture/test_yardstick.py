"""Yardsticks take the same time whenever the machine is as fast, and leave nothing behind in the process."""

import gc
import itertools
import random

from tracekit.capture.child.clocks import RunQueue, Yardsticks


def test_both_are_timed():
    computed_ns, visited_ns = Yardsticks(RunQueue()).ns()
    assert 10_000 < computed_ns < 100_000_000
    assert 10_000 < visited_ns < 100_000_000


def test_a_process_has_the_random_numbers_and_the_garbage_that_it_had():
    before = random.getstate()
    yardsticks = Yardsticks(RunQueue())
    yardsticks.ns()
    assert random.getstate() == before
    gc.collect()  # rows first, and then what holds them
    gc.collect()
    assert not gc.is_tracked(yardsticks._objects)


def test_a_machine_half_as_fast_takes_twice_as_long(monkeypatch):
    def taken(tick_ns):
        clock = itertools.count(step=tick_ns)
        monkeypatch.setattr(RunQueue, "now_ns", lambda _: next(clock))
        return Yardsticks(RunQueue()).ns()

    assert taken(1000) == [2 * ns for ns in taken(500)]
