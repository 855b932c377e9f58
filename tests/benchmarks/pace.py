"""The pace that a capture measures of a script, beside that of a plain run. `python -m tests.benchmarks.pace`.

Plain and captured runs take turns, and the same steps of both are compared: by the clock and, since other people's
jobs disturb that, by the processor time that the script itself counts in its calmest steps.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

from tracekit.capture import process
from tracekit.capture.job import Job
from tracekit.uncertainty import half_width_of_mean

TARGET = 0.02
_SCRIPT = """
import json, os, resource, sys, time, torch
torch.manual_seed(0)
net = torch.nn.Sequential(*(layer for _ in range(4) for layer in (torch.nn.Linear(128, 128), torch.nn.ReLU())))
optimizer, x = torch.optim.Adam(net.parameters()), torch.randn(1024, 128)
stamps = []
try:
    for _ in range(250):
        optimizer.zero_grad()
        net(x).square().mean().backward()
        optimizer.step()
        used = resource.getrusage(resource.RUSAGE_SELF)
        stamps.append((time.perf_counter_ns(), round((used.ru_utime + used.ru_stime) * 1e9)))
finally:
    with open(os.environ["STAMPS"], "w") as file:
        json.dump(stamps, file)
"""
Pace = tuple[float, float]  # ns of a step: median by the clock; of the processor, in the calmest tenth of the steps
Captured = tuple[Pace, slice]


def main() -> int:
    """Measure and print; 1 where a capture is off by more than it may be, beyond what chance explains."""
    parser = argparse.ArgumentParser(prog="tests.benchmarks.pace", description=__doc__)
    parser.add_argument("--pairs", type=int, default=12, help="plain and captured runs, in turns (default: 12)")
    pairs = parser.parse_args().pairs
    with tempfile.TemporaryDirectory(prefix="tracekit-pace-") as name:
        ratios = _ratios(Path(name), pairs)
    names = ("by the clock", "by processor time")
    print(f"measured pace against plain, {pairs} pairs of runs:")
    off = [_told(name, each) for name, each in zip(names, zip(*ratios, strict=True), strict=True)]
    return int(any(off))


def _ratios(folder: Path, pairs: int) -> list[Pace]:
    """Captured over plain, of each pair."""
    script = folder / "train.py"
    script.write_text(_SCRIPT)
    ratios = []
    for turn in range(pairs):
        plain, captured, steps = _pair(script, folder, plain_first=turn % 2 == 0)
        ours, theirs = captured, _pace(plain, steps)
        ratios.append((ours[0] / theirs[0], ours[1] / theirs[1]))
    return ratios


def _pair(script: Path, folder: Path, plain_first: bool) -> tuple[list[list[int]], Pace, slice]:
    runs: dict[str, Callable[[], object]] = {"plain": lambda: _plain(script, folder)}
    runs["captured"] = lambda: _captured(script, folder)
    names = [*runs] if plain_first else [*runs][::-1]
    done = {name: runs[name]() for name in names}
    pace, steps = done["captured"]  # type: ignore[misc]
    return done["plain"], pace, steps  # type: ignore[return-value]


def _plain(script: Path, folder: Path) -> list[list[int]]:
    stamps = folder / "plain.json"
    subprocess.run([sys.executable, str(script)], env={**os.environ, "STAMPS": str(stamps)}, check=True)
    found: list[list[int]] = json.loads(stamps.read_text())
    return found


def _captured(script: Path, folder: Path) -> Captured:
    """What the capture says of the clock, and what the script counted itself in the very same steps."""
    stamps = folder / "captured.json"
    os.environ["STAMPS"] = str(stamps)
    with process.scratch() as scratch:
        job = Job(stage="measure", recipe=str(script), script=True, folder=str(folder))
        answer = process.perform(job, scratch, folder / "captured.log", 600)
    assert answer.measured is not None, answer.error
    first = answer.measured.warmup_steps + 1  # one more told how many to time
    steps = slice(first, first + answer.measured.steps)
    return (answer.measured.step_ns, _pace(json.loads(stamps.read_text()), steps)[1]), steps


def _pace(stamps: list[list[int]], steps: slice) -> Pace:
    chosen = stamps[steps]
    clock, processor = ([after[of] - before[of] for before, after in pairwise(chosen)] for of in (0, 1))
    return statistics.median(clock), statistics.quantiles(processor, n=10)[0]


def _told(name: str, ratios: tuple[float, ...]) -> bool:
    """Print it; whether it is off for certain."""
    logs = [math.log(each) for each in ratios]
    middle, half = statistics.fmean(logs), half_width_of_mean(logs)
    low, high = math.exp(middle - half), math.exp(middle + half)
    print(f"  {name:18} {math.exp(middle):.3f} × (95 %: {low:.3f}–{high:.3f}; median {statistics.median(ratios):.3f})")
    return low > 1 + TARGET or high < 1 - TARGET


if __name__ == "__main__":
    sys.exit(main())
