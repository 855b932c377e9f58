"""On a GPU, what the compiled tally notes is what Python notes; the GPU is one whose work is simulated."""

import random
from collections import Counter

import pytest
import torch

from tests.watching import planted
from tracekit.watched import Flag, Record
from tracekit.watched.record import UNKNOWN
from tracekit.watching import clocks, observation, process, watch
from tracekit.watching.tally import PlainTally, Tally

if Tally is PlainTally:
    pytest.skip("nothing is compiled here", allow_module_level=True)

STEPS = 900
WORK_S = 0.004


class Event:
    """Is passed when the work is done that was submitted before."""

    def __init__(self):
        self.at = 0


class Gpu:
    """Does its work on one stream, behind the host; other streams only have events."""

    def __init__(self, pace):
        self.pace, self.done_ns = pace, 0
        self.stream, self.is_capturing = (7, 0, 1), False
        self.asked_while_capturing = 0

    def work(self, seconds):
        self.done_ns = max(self.done_ns, self.pace.host_ns) + round(seconds * 1e6) * 1000

    def record(self, event, stream):
        assert stream == self.stream
        event.at = self.done_ns if stream[0] == 7 else self.pace.host_ns

    def query(self, event):
        self.asked_while_capturing += self.is_capturing
        return event.at <= self.pace.host_ns

    def calls(self):
        return (
            *(Event, self.record, lambda _: self.stream, lambda: self.is_capturing, self.query),
            *(lambda begin, end: (end.at - begin.at) / 1e6, 0),
        )


class Clock(clocks.TallyClock):
    """Asks the simulated GPU."""

    gpu = None

    def __init__(self, tally, device):
        self._tally, self._device = tally, device
        _, self._record, self._stream_of, self._is_capturing, *_ = self.gpu.calls()
        self.is_used = isinstance(tally, Tally) and tally.use_gpu(*self.gpu.calls())

    def _event(self):
        self._tally.stream = self.gpu.stream  # a stream is its own key here
        return super()._event()


class InPython(clocks.GpuClock):
    """The clock without the tally, of that GPU."""

    @staticmethod
    def of(device):
        gpu = Clock.gpu

        class Asked(Event):
            def query(self):
                return gpu.query(self)

            def elapsed_time(self, end):
                return (end.at - self.at) / 1e6

        return clocks.GpuClock(lambda event: gpu.record(event, gpu.stream), Asked, lambda: not gpu.is_capturing)


@pytest.fixture
def a_gpu(monkeypatch):
    facts = process.facts
    monkeypatch.setattr(process, "device", lambda: 0)
    monkeypatch.setattr(process, "facts", lambda step, clock, _, loader: facts(step, clock, None, loader))
    monkeypatch.setattr(observation.Memory, "look", lambda _: (1, 0))
    monkeypatch.setattr(observation, "TallyClock", Clock)
    monkeypatch.setattr(observation, "GpuClock", InPython)


def trained(folder, kind, seed, monkeypatch, is_steady=False):
    """A training in which all kinds of things happen, or only slow steps; its steps as they were recorded."""
    draw, pace = random.Random(seed), planted.Clocks(monkeypatch, kind)
    gpu = Gpu(pace)
    monkeypatch.setattr(Clock, "gpu", gpu)
    monkeypatch.setattr(observation, "time_ns", lambda: 10**18 + pace.host_ns)
    monkeypatch.setattr(clocks, "gpu", lambda: gpu)
    gpu.current_stream = lambda _: gpu.stream
    parameter = torch.nn.Parameter(torch.ones(4))
    optimizer = torch.optim.SGD([parameter], lr=1e-3)
    with watch(folder, traces_per_hour=0) as watched:
        for _ in range(STEPS):
            pace.work(WORK_S / draw.choice((2, 4)))
            gpu.work(WORK_S * (1 + 0.05 * draw.random()))
            if is_steady or draw.random() < 0.3:  # the host waits for the GPU
                pace.host_ns = max(pace.host_ns, gpu.done_ns)
            if draw.random() < 0.005:
                gpu.work(0.1)
            if draw.random() < 0.01:
                watched.apart()
            if draw.random() < 0.01:
                watched.summary()
            gpu.is_capturing = not is_steady and draw.random() < 0.01
            if not is_steady and draw.random() < 0.02:
                gpu.stream = (draw.choice((7, 8)), 0, 1)
            parameter.sum().backward()
            optimizer.step()
    assert not gpu.asked_while_capturing
    (path,) = folder.glob("*.watch")
    steps = Record.open(path).steps.entries()
    return [step._replace(usual_ns=0, limit_ns=0, collections=0, collect_ns=0) for step in steps]


def unjudged(steps):
    """Where steps scatter widely, what is usual – and follows up to 64 steps later – decides which are slow."""
    return [step._replace(flags=step.flags & Flag.APART, cause=0) for step in steps]


@pytest.mark.parametrize("seed", range(12))
def test_both_note_the_same(tmp_path, monkeypatch, a_gpu, seed):
    compiled, plain = (trained(tmp_path / kind.__module__, kind, seed, monkeypatch) for kind in (Tally, PlainTally))
    assert len(compiled) == STEPS  # also those that the GPU has not passed at the end
    assert len(plain) > STEPS - 2 * clocks.EVENTS
    for one, other in zip(unjudged(compiled), unjudged(plain), strict=False):
        assert one == other
    assert all(step.step_ns == UNKNOWN for step in compiled[len(plain) :])
    assert sum(step.step_ns != UNKNOWN for step in plain) > STEPS / 2


@pytest.mark.parametrize("seed", range(6))
def test_both_call_the_same_steps_slow(tmp_path, monkeypatch, a_gpu, seed):
    ends = Counter()
    end = observation.Observation.end
    monkeypatch.setattr(
        observation.Observation, "end", lambda seen, *given: ends.update([seen._tally_writes]) or end(seen, *given)
    )
    compiled, plain = (
        trained(tmp_path / kind.__module__, kind, seed, monkeypatch, is_steady=True) for kind in (Tally, PlainTally)
    )
    for one, other in zip(compiled, plain, strict=False):
        assert one == other
    assert any(step.flags & Flag.SLOW for step in plain)
    assert ends[False] >= STEPS  # in Python
    assert ends[True] < STEPS / 5  # most are noted without it
