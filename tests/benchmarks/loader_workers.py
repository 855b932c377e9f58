"""What it costs a worker of a data loader to be sampled: its processor time, with and without.

    python -m tests.benchmarks.loader_workers [--pairs 300] [--limit 1.0]

For each kind of dataset, one recorded worker makes batches, and its sampler is awake in every second block of them: two
processes differ by more than what is to be measured, because each has another layout of memory. The processor time is
that of all threads of the worker. Neighbouring blocks are pairs; given are the means of their differences, with
intervals at 95 %, and what is added for each batch. What is noted of each batch beside the samples is timed alone. It
fails where the whole interval is above the limit, in percent.
"""

import argparse
import math
import statistics
import tempfile
import threading
import time
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from tracekit.capture.child.loaders import RecordedLoaders
from tracekit.loading import recorder
from tracekit.statistics.uncertainty import half_width_of_mean

_BLOCK = 8  # batches: neighbouring blocks are to be alike
_SAMPLES = 8  # in a batch
_NOTED = 5000  # batches that are only noted
_awake = threading.Event()


class Work(Dataset):
    """Samples that take some milliseconds of one kind of work, each with the processor time of its process until then,
    ns."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __len__(self) -> int:
        return 1 << 30

    def __getitem__(self, index: int) -> torch.Tensor:
        (_awake.set if index // (_BLOCK * _SAMPLES) % 2 else _awake.clear)()
        _WORK[self.kind](index)
        return torch.tensor([time.process_time_ns()])


def python(index: int) -> None:
    """A loop in Python, which never lets go of its lock by itself."""
    counts: dict[int, int] = {}
    for number in range(20_000):
        counts[number % 97] = counts.get(number % 97, 0) + index


def operators(index: int) -> None:
    """Many small operators of torch."""
    tensor = torch.full((64, 64), float(index % 7))
    for _ in range(300):
        tensor = torch.relu(tensor - 1.0)


def arrays(index: int) -> None:
    """A few long calls of NumPy, as of decoding or of sampling neighbours."""
    np.sort(np.random.default_rng(index).random(60_000))


_WORK = {"python": python, "operators": operators, "arrays": arrays}


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="tests.benchmarks.loader_workers", description=__doc__)
    parser.add_argument("--pairs", type=int, default=300)
    parser.add_argument("--limit", type=float, default=1.0, help="%% of a worker's processor time")
    parser.add_argument("--only", default=",".join(_WORK))
    options = parser.parse_args()
    is_above = False
    recorder.time = SimpleNamespace(time_ns=time.time_ns, thread_time=time.thread_time, sleep=_sleep_if_awake)
    print(f"to note a batch: {noting_us():.1f} µs")
    for kind in options.only.split(","):
        asleep, awake = blocks(kind, options.pairs)
        ratios = [math.log(ours / theirs) for ours, theirs in zip(awake, asleep, strict=True)]
        mean, half = statistics.fmean(ratios), half_width_of_mean(ratios, 0.95)
        added_us = statistics.fmean(ours - theirs for ours, theirs in zip(awake, asleep, strict=True)) / 1e3
        low, high = (100 * math.expm1(end) for end in (mean - half, mean + half))
        print(
            f"{kind:9}  {statistics.median(asleep) / 1e6:6.2f} ms a batch  {100 * math.expm1(mean):+.2f} % "
            f"({low:+.2f} to {high:+.2f} %; {options.pairs} pairs)  {added_us:+.0f} µs a batch",
            flush=True,
        )
        is_above |= low > options.limit
    return int(is_above)


def blocks(kind: str, pairs: int) -> tuple[list[float], list[float]]:
    """Processor ns of a batch for each block in which the sampler sleeps, and for each in which it is awake."""
    with tempfile.TemporaryDirectory(prefix="tracekit-bench-") as folder, RecordedLoaders(Path(folder)):
        batches = iter(DataLoader(Work(kind), batch_size=_SAMPLES, num_workers=1))
        stamps = [int(next(batches)[-1]) for _ in range((2 * pairs + 2) * _BLOCK)]
    lasting = [(end - begin) / _BLOCK for begin, end in pairwise(stamps[2 * _BLOCK - 1 :: _BLOCK])]  # after a warm-up
    return lasting[0::2], lasting[1::2]


def noting_us() -> float:
    """How long it takes to note the moments and the size of one batch, µs of processor time."""
    with tempfile.TemporaryDirectory(prefix="tracekit-bench-") as folder:
        noted = recorder.WorkerRecorder(Path(folder), worker=0, workers=1, rank=0)
        tensor = torch.zeros(_SAMPLES)
        began = time.process_time_ns()
        for number in range(_NOTED):
            noted._got((number, [number]))
            entry = (number, tensor)
            noted._made(entry)
            noted._pickles(entry)
            noted._sent()
        return (time.process_time_ns() - began) / _NOTED / 1e3


def _sleep_if_awake(seconds: float) -> None:
    _awake.wait()
    time.sleep(seconds)


if __name__ == "__main__":
    raise SystemExit(main())
