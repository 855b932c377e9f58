"""What it costs a worker of a data loader to record itself: its processor time, with and without.

    python -m tests.benchmarks.loader_workers [--pairs 30] [--limit 1.0]

For each kind of dataset, a recorded worker and one that is not make the same batches side by side. The processor time
of a worker is that of all its threads: of its own work, of the thread that sends batches, and of the sampler. Blocks of
both are pairs; given are the means of their differences, with intervals at 95 %, and what is added for each batch. It
fails where the whole interval is above the limit, in percent.
"""

import argparse
import math
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from tracekit.capture.child.loaders import RecordedLoaders
from tracekit.statistics.uncertainty import half_width_of_mean

_BLOCK = 40  # batches
_SAMPLES = 8  # in a batch


class Work(Dataset):
    """Samples that take some milliseconds of one kind of work, each with the processor time of its process until then,
    ns."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __len__(self) -> int:
        return 1 << 30

    def __getitem__(self, index: int) -> torch.Tensor:
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
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--limit", type=float, default=1.0, help="%% of a worker's processor time")
    parser.add_argument("--only", default=",".join(_WORK))
    options = parser.parse_args()
    is_above = False
    for kind in options.only.split(","):
        with_records, without = blocks(kind, options.pairs)
        ratios = [math.log(ours / theirs) for ours, theirs in zip(with_records, without, strict=True)]
        mean, half = statistics.fmean(ratios), half_width_of_mean(ratios, 0.95)
        added_us = statistics.fmean(ours - theirs for ours, theirs in zip(with_records, without, strict=True)) / 1e3
        low, high = (100 * math.expm1(end) for end in (mean - half, mean + half))
        print(
            f"{kind:9}  {statistics.median(without) / 1e6:6.2f} ms a batch  {100 * math.expm1(mean):+.2f} % "
            f"({low:+.2f} to {high:+.2f} %; {options.pairs} pairs)  {added_us:+.0f} µs a batch",
            flush=True,
        )
        is_above |= low > options.limit
    return int(is_above)


def blocks(kind: str, pairs: int) -> tuple[list[float], list[float]]:
    """Processor ns of a batch, for each block, of the recorded worker and of the other."""
    with tempfile.TemporaryDirectory(prefix="tracekit-bench-") as folder:
        other = iter(DataLoader(Work(kind), batch_size=_SAMPLES, num_workers=1))
        with RecordedLoaders(Path(folder)):
            recorded = iter(DataLoader(Work(kind), batch_size=_SAMPLES, num_workers=1))
            stamps: tuple[list[int], list[int]] = ([], [])
            for _ in range((pairs + 1) * _BLOCK):  # the first block warms up
                for loader, its_stamps in zip((recorded, other), stamps, strict=True):
                    its_stamps.append(int(next(loader)[-1]))
    ours, theirs = (
        [(each[n + _BLOCK] - each[n]) / _BLOCK for n in range(_BLOCK - 1, len(each) - _BLOCK, _BLOCK)]
        for each in stamps
    )
    return ours, theirs


if __name__ == "__main__":
    raise SystemExit(main())
