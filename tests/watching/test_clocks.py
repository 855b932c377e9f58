"""How long steps take: on a GPU's stream, by events that are never waited for; on events that pretend to be a GPU's."""

import os
import time

from tracekit.watched.record import UNKNOWN
from tracekit.watching.clocks import EVENTS, GpuClock, HostClock, ThreadClock


class Gpu:
    """A stream that passes events when it is told to."""

    def __init__(self):
        self.recorded, self.passed = [], 0
        self.made = 0
        self.records_a_graph = False

    def clock(self):
        return GpuClock(self.record, self.make, lambda: not self.records_a_graph)

    def make(self):
        self.made += 1
        return Event(self)

    def record(self, event):
        event.at = len(self.recorded)
        self.recorded.append(event)


class Event:
    def __init__(self, gpu):
        self.gpu, self.at = gpu, None

    def query(self):
        assert not self.gpu.records_a_graph, "even a question would spoil the graph"
        return self.at < self.gpu.passed

    def elapsed_time(self, end):
        assert self.query()
        assert end.query()
        return float(end.at - self.at)  # ms


def test_steps_are_told_once_the_gpu_has_passed_them():
    gpu = Gpu()
    clock = gpu.clock()
    assert [*clock.end("setup", 5)] == []  # its begin was not recorded
    assert [*clock.end("first", 5)] == []
    gpu.passed = 2
    assert [*clock.end("second", 5)] == [("setup", UNKNOWN), ("first", 1_000_000)]
    gpu.passed = 3
    assert [*clock.end("third", 5)] == [("second", 1_000_000)]


def test_events_are_used_again():
    gpu = Gpu()
    clock = gpu.clock()
    for number in range(500):
        gpu.passed = len(gpu.recorded)
        clock.end(number, 5)
    assert gpu.made < 5


def test_a_gpu_that_is_far_behind_leaves_steps_unknown():
    gpu = Gpu()
    clock = gpu.clock()
    told = [told for number in range(EVENTS + 3) for told in clock.end(number, 5)]
    assert told == [(0, UNKNOWN), (1, UNKNOWN), (2, UNKNOWN)]
    assert gpu.made <= EVENTS + 2


def test_what_happens_between_steps_is_in_none():
    gpu = Gpu()
    clock = gpu.clock()
    clock.end("setup", 5)
    for _ in range(7):
        gpu.record(Event(gpu))  # a trace is written
    clock.restart()
    clock.end("first", 5)
    gpu.passed = len(gpu.recorded)
    assert dict(clock.end("second", 5))["first"] == 1_000_000


def test_nothing_is_recorded_or_asked_while_a_graph_is_recorded():
    gpu = Gpu()
    clock = gpu.clock()
    clock.end("setup", 5)
    gpu.records_a_graph = True
    before = len(gpu.recorded)
    assert [*clock.end("recording", 5)] == []
    assert len(gpu.recorded) == before
    gpu.records_a_graph = False
    clock.end("after", 5)
    clock.end("next", 5)
    gpu.passed = len(gpu.recorded)
    told = dict(clock.end("last", 5))
    assert told["recording"] == told["after"] == UNKNOWN  # neither has both ends
    assert told["next"] == 1_000_000


def test_on_the_host_a_step_takes_what_the_host_takes():
    assert [*HostClock().end("step", 5)] == [("step", 5)]


def test_a_threads_clock_tells_work_from_sleep():
    clock = ThreadClock()
    began = time.perf_counter_ns()
    until = time.thread_time() + 0.03
    while time.thread_time() < until:
        pass
    time.sleep(0.03)
    host_ns = time.perf_counter_ns() - began
    on_core, queued = clock.passed(host_ns)
    assert 30_000_000 <= on_core <= host_ns
    if os.path.exists("/proc/thread-self/schedstat"):
        assert 0 <= queued <= host_ns - on_core
    else:
        assert queued == UNKNOWN
    assert clock.passed(0) == (UNKNOWN, UNKNOWN)  # it was asked just now
    clock.close()
