"""Other work on the machine is noticed at once, a core is left to it, and what steps wait for one is not counted."""

import os
import sys
import threading
import time

import pytest

from tests.verify.programs import beside
from tracekit.capture import environment
from tracekit.capture.child.clocks import RunQueue

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux says how many processes run")


@pytest.mark.parametrize(
    ("running", "shared", "cores", "why"),
    [
        (0.0, 0, 2, ""),
        (0.4, 2, 2, ""),  # anything disturbs a core now and then
        (0.6, 0, 2, "other work runs on this machine"),
        (None, 7, 16, "in 7 of 100 tries, as many threads as cores did not run at the same time"),
        (9.0, 100, 1, ""),
        (2.0, 100, None, ""),
    ],
)
def test_a_core_is_left_to_other_work(monkeypatch, running, shared, cores, why):
    monkeypatch.setattr(environment, "running_beside", lambda: running)
    monkeypatch.setattr(environment, "tries_shared", lambda threads: shared)
    assert environment.why_one_fewer(cores) == why


def test_processes_that_run_are_counted():
    with beside(2):
        assert max(environment.running_beside() for _ in range(5)) >= 1


def test_threads_that_share_a_core_are_seen(monkeypatch):
    monkeypatch.setattr(environment, "_HASHED", bytes(20_000_000))  # so long that they cannot run one after the other
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        # Where other work has the core meanwhile, one thread alone is as slow: it is tried again.
        assert any(environment.tries_shared(2) > 50 for _ in range(5))
    finally:
        os.sched_setaffinity(0, allowed)


def test_processors_that_share_a_core_are_one(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3})
    for cpu in range(4):
        (tmp_path / f"cpu{cpu}/topology").mkdir(parents=True)
        (tmp_path / f"cpu{cpu}/topology/thread_siblings_list").write_text(f"{cpu % 2},{cpu % 2 + 2}\n")
    monkeypatch.setattr(environment, "_PROCESSORS", tmp_path)
    assert environment.cores_of(4) == 2
    monkeypatch.setattr(environment, "_PROCESSORS", tmp_path / "missing")
    assert environment.cores_of(4) == 4
    assert environment.cores_of(None) is None


def test_waits_for_a_core_are_no_part_of_what_a_thread_takes():
    """Three processes want the one core that this thread may use as well; asleep, it waits for none."""
    allowed = os.sched_getaffinity(0)
    with beside(0):
        queue = RunQueue()
        if not queue.is_known:
            pytest.skip("this kernel does not count waits for a core")
    os.sched_setaffinity(0, {min(allowed)})
    try:
        with beside(3):
            time.sleep(0.2)
            began, own = time.perf_counter_ns(), queue.now_ns()
            worked = time.thread_time_ns()
            while time.thread_time_ns() - worked < 200_000_000:
                pass
            took, took_by_own = time.perf_counter_ns() - began, queue.now_ns() - own
    finally:
        os.sched_setaffinity(0, allowed)
    assert took > 1.5 * took_by_own
    assert took_by_own == pytest.approx(200_000_000, rel=0.2)
    waited = queue.waited_ns()
    began, own = time.perf_counter_ns(), queue.now_ns()
    time.sleep(0.05)
    assert queue.now_ns() - own >= 40_000_000
    assert time.perf_counter_ns() - began - (queue.now_ns() - own) <= queue.waited_ns() - waited + 1_000_000


def test_without_the_count_of_the_kernel_the_clock_is_that_of_the_wall(monkeypatch):
    monkeypatch.setattr(threading, "get_native_id", lambda: 0)
    queue = RunQueue()
    assert not queue.is_known
    assert queue.waited_ns() == 0
    assert abs(queue.now_ns() - time.perf_counter_ns()) < 10_000_000
