"""How long steps take: on a GPU's stream, by events that are never waited for; on events that pretend to be a GPU's."""

import os
import threading
import time

import pytest

from tracekit.watched.record import UNKNOWN
from tracekit.watching import clocks
from tracekit.watching.clocks import EVENTS, GpuClock, HostClock, ThreadClock
from tracekit.watching.tally import PlainTally


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


def test_a_step_that_ends_on_another_stream_may_be_unknown():
    gpu = Gpu()
    clock = gpu.clock()
    clock.end("setup", 5)
    clock.restart()
    other = Gpu()
    clock._record = other.record  # the training has made another stream the current one
    clock._make = other.make
    other.passed = 5
    gpu.passed = 1
    assert [*clock.end("first", 5)] == [("setup", UNKNOWN), ("first", UNKNOWN)]  # what it began with is not passed
    gpu.passed = 100
    clock._last = Event(gpu)
    clock._last.at = 50  # later on the one stream than the end on the other
    assert [*clock.end("second", 5)] == [("second", UNKNOWN)]


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
    clock = ThreadClock(PlainTally())
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


class System:
    """Tells what a thread had of a core, and what it waited for one."""

    def __init__(self, monkeypatch):
        self.on_core_ns = self.queued_ns = self.reads = 0
        monkeypatch.setattr(clocks.time, "thread_time_ns", self.thread_time_ns)
        monkeypatch.setattr(clocks.ThreadClock, "_queued", lambda _: self.queued_ns)

    def thread_time_ns(self):
        self.reads += 1
        return self.on_core_ns

    def step(self, clock, on_core_us, queued_us=0, off_us=0):
        self.on_core_ns += on_core_us * 1000
        self.queued_ns += queued_us * 1000
        return clock.passed((on_core_us + queued_us + off_us) * 1000)


def test_of_short_steps_the_system_is_asked_now_and_then(monkeypatch):
    system = System(monkeypatch)
    clock = ThreadClock(PlainTally())
    told = [system.step(clock, 600) for _ in range(8)]
    assert told == [*[(UNKNOWN, UNKNOWN)] * 3, (600_000, 0)] * 2  # 0.6 + 0.6 + 0.6 ms are less than 2 ms
    assert system.reads == 3
    system.step(clock, 600)
    assert system.step(clock, 5_000, off_us=20_000)[0] == 5_000_000  # the step before counts as on core
    system.step(clock, 100, off_us=900)
    assert system.step(clock, 5_000, off_us=20_000)[0] == 4_100_000  # also if it was not
    assert system.step(clock, 3_000) == (3_000_000, 0)  # which does not go on
    clock.close()


@pytest.mark.skipif(not os.path.exists(clocks._SCHEDSTAT), reason="the system does not tell")
def test_what_short_waits_for_a_core_add_up_to_is_not_the_next_steps(monkeypatch):
    system = System(monkeypatch)
    clock = ThreadClock(PlainTally())
    clock._kept.schedstat = max(clock._kept.schedstat, 0)
    for _ in range(200):
        system.step(clock, 3_000, queued_us=300)
    on_core, queued = system.step(clock, 3_000, off_us=50_000)
    assert on_core == 3_000_000
    assert queued < 1_000_000  # not 50 of the 60 ms that all of them waited for
    assert system.step(clock, 3_000, queued_us=50_000) == (3_000_000, 50_000_000)


def test_a_threads_clock_can_be_asked_when_its_thread_has_ended():
    made = []
    thread = threading.Thread(target=lambda: made.append(ThreadClock(PlainTally())))
    thread.start()
    thread.join()
    (clock,) = made
    time.sleep(0.1)  # the system takes a moment to forget it
    assert clock.passed(60_000_000_000)[1] in (0, UNKNOWN)
    clock.close()
