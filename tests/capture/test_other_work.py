"""What steps wait for a core that other work on the machine holds is not counted."""

import os
import sys
import threading
import time

import pytest

from tests.verify.programs import beside
from tracekit.capture.child.clocks import RunQueue

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux says how many processes run")


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
