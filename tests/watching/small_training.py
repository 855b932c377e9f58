"""A small training to be watched, in this process or in a fork of it, and what the watch left of it."""

import os
import signal
import time
from contextlib import contextmanager
from functools import partial

import torch
from torch.utils.data import Dataset

from tracekit.watched import Record
from tracekit.watching import watch as watch_with_traces

watch = partial(watch_with_traces, traces_per_hour=0)  # other work on the machine makes steps slow


class Training:
    """A small one."""

    def __init__(self):
        self.parameter = torch.nn.Parameter(torch.ones(4))
        self.optimizer = torch.optim.SGD([self.parameter], lr=0.1)

    def step(self, batch=1.0):
        self.optimizer.zero_grad()
        (self.parameter * batch).sum().backward()
        self.optimizer.step()


class Numbers(Dataset):
    def __init__(self, count, delay=0.0):
        self.count, self.delay = count, delay

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        time.sleep(self.delay)
        return torch.tensor(float(index))


def record(folder):
    (path,) = folder.glob("*.watch")
    return Record.open(path)


def steps(folder):
    return record(folder).steps.entries()


@contextmanager
def forked_training(folder):
    """The process of a training that is watched, and runs until it is killed."""
    process = os.fork()
    if not process:
        try:
            training = Training()
            with watch(folder):
                while True:
                    training.step()
        finally:
            os._exit(1)
    try:
        give_up = time.monotonic() + 60
        while not [*folder.glob("*.watch")] and time.monotonic() < give_up:
            time.sleep(0.01)
        yield process
    finally:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
