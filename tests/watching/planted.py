"""A small training in which some steps are slow for a known cause; and what the watch made of them.

Time passes as a `Pace` says: really, or, so that nothing else on the machine takes part, on clocks that are set.
"""

import gc
import random
import time
from contextlib import contextmanager
from types import FunctionType
from typing import NamedTuple

import torch
from torch.utils.data import DataLoader, Dataset

from tracekit.watched import Cause, Flag, Record
from tracekit.watching import clocks, loop, observation, sources, tally, watch

USUAL_S, SLOW_S = 0.004, 0.06
HIDDEN_BY_PREFETCHING = 4  # times as long, a batch of a worker is late, although others are ready
FIRST, EVERY = 64, 40  # steps before anything is planted; the length of a stretch with one slow step
CAUSES = {
    "sleep": Cause.OFF_PROCESSOR,
    "batch": Cause.BATCH,
    "worker": Cause.BATCH,
    "compilation": Cause.COMPILATION,
    "collection": Cause.COLLECTION,
    "work": Cause.LONGER_WORK,
    "core": Cause.QUEUED,
}


class Real:
    """Time that passes."""

    def sleep(self, seconds):
        time.sleep(seconds)

    def work(self, seconds):
        until = time.thread_time() + seconds
        while time.thread_time() < until:
            pass


class Clocks:
    """Clocks that only move when they are set; each step scatters by a few percent."""

    def __init__(self, monkeypatch, kind=tally.Tally):
        self.host_ns = self.core_ns = self.queued_ns = 0
        self._draw = random.Random(0)
        for module in (observation, sources, tally):
            monkeypatch.setattr(module, "perf_counter_ns", lambda: self.host_ns)
        monkeypatch.setattr(clocks.time, "thread_time_ns", lambda: self.core_ns)
        monkeypatch.setattr(clocks.ThreadClock, "_queued", lambda _: self.queued_ns)

        def make():
            made = kind()
            made.clock = lambda which: (self.host_ns, self.core_ns, self.queued_ns)[which]
            return made

        monkeypatch.setattr(loop, "Tally", make)

    def sleep(self, seconds):
        self.host_ns += self._scattered(seconds)

    def work(self, seconds):
        ns = self._scattered(seconds)
        self.host_ns += ns
        self.core_ns += ns

    def wait_for_core(self, seconds):
        ns = self._scattered(seconds)
        self.host_ns += ns
        self.queued_ns += ns

    def _scattered(self, seconds):
        return int(1e9 * seconds * (1 + 0.05 * self._draw.random()))


class Found(NamedTuple):
    planted: int
    caught: int
    right: int  # of those that were caught
    quiet: int  # steps in which nothing was planted, and which took no longer than twice the usual
    alarms: int  # how many of these were called slow


class Batches(Dataset):
    def __init__(self, count, pace, slow=(), slow_s=SLOW_S):
        self.count, self.pace, self.slow, self.slow_s = count, pace, slow, slow_s

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        self.pace.sleep(self.slow_s if index in self.slow else USUAL_S / 4)
        return torch.full((4,), float(index))


def trained(folder, cause, count, pace):
    """Train for so many steps with slow ones of that kind."""
    draw = random.Random(count)
    slow = {start + draw.randrange(EVERY // 2) for start in range(FIRST, count - EVERY, EVERY)}
    parameter = torch.nn.Parameter(torch.ones(4))
    optimizer = torch.optim.SGD([parameter], lr=1e-3)
    slow_s = SLOW_S * (HIDDEN_BY_PREFETCHING if cause == "worker" else 1)
    dataset = Batches(count, pace, slow if cause in ("batch", "worker") else (), slow_s)
    loader = DataLoader(dataset, num_workers=2 if cause == "worker" else 0)
    with watch(folder, traces_per_hour=0):
        for number, batch in enumerate(loader):
            optimizer.zero_grad()
            (parameter * batch).sum().backward()
            pace.work(USUAL_S)
            if number in slow:
                _plant(cause, pace)
            optimizer.step()
    (path,) = folder.glob("*.watch")
    steps = {step.number: step for step in Record.open(path).steps.entries()}
    assert len(steps) == count
    caught = [steps[number] for number in slow if steps[number].flags & Flag.SLOW]
    quiet = [
        step
        for number, step in steps.items()
        if number >= FIRST and number not in slow and step.step_ns <= 2 * step.usual_ns
    ]
    return Found(
        len(slow),
        len(caught),
        sum(step.cause == CAUSES[cause] for step in caught),
        len(quiet),
        sum(bool(step.flags & Flag.SLOW) for step in quiet),
    )


def _plant(cause, pace):
    if cause == "sleep":
        pace.sleep(SLOW_S)
    elif cause == "work":
        pace.work(SLOW_S)
    elif cause == "core":
        pace.wait_for_core(SLOW_S)
    elif cause == "collection":
        with _slow_collector(pace):
            gc.collect()
    elif cause == "compilation":

        def backend(graph, _):
            pace.work(SLOW_S)
            return graph.forward

        code = (lambda x: x * 2).__code__.replace()  # of the same one, Dynamo compiles no more than eight versions
        torch.compile(FunctionType(code, globals()), backend=backend)(torch.ones(2))


@contextmanager
def _slow_collector(pace):
    def slowly(phase, _):
        if phase == "start":
            pace.work(SLOW_S)

    gc.callbacks.append(slowly)  # after the watch's own, so that the collection has begun
    try:
        yield
    finally:
        gc.callbacks.remove(slowly)
