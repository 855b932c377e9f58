"""How much a capture slows the steps of a script that it measures. `python -m tests.benchmarks.pace`, two minutes.

Two processes of one script differ by more than a capture could add, because of their memory layout and of what else the
machine does. The answer therefore comes from one process, from blocks of the same steps with and without the capture
(`pace_in_blocks.py`). The differences between processes are shown beside it: between plain ones, and between captured
and plain ones.
"""

import argparse
import json
import math
import operator
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.benchmarks.pace_in_blocks import SCRIPT, paces
from tracekit.capture import process
from tracekit.capture.job import Job
from tracekit.statistics.uncertainty import CONFIDENCE, Interval, half_width_of_mean, interval_of_median

TARGET = 0.02
_STEPS = 250
_SCRIPTS_FILE = "stamps.json"


def main() -> int:
    """Measure and print. Returns 1 if steps under the capture certainly differ by more than the target."""
    parser = argparse.ArgumentParser(prog="tests.benchmarks.pace", description=__doc__)
    parser.add_argument("--blocks", type=int, default=50, help="pairs of blocks in one process (default: 50)")
    parser.add_argument("--rounds", type=int, default=4, help="of a plain, a captured and a plain process (default: 4)")
    options = parser.parse_args()
    print(f"a captured step against a plain one, {options.blocks} pairs of blocks in one process:", flush=True)
    low, high = _in_blocks(options.blocks)
    print(f"the same between processes, {options.rounds} rounds of plain, captured, plain:", flush=True)
    with tempfile.TemporaryDirectory(prefix="tracekit-pace-") as folder:
        _between_processes(Path(folder), options.rounds)
    off = low > 1 + TARGET or high < 1 - TARGET
    print(f"The capture {'changes' if off else 'is not seen to change'} a step by more than {TARGET:.0%}.")
    return int(off)


def _in_blocks(pairs: int) -> Interval:
    """Print the ratios, also as times. Returns the interval of the ratio by the clock."""
    command = [sys.executable, "-m", "tests.benchmarks.pace_in_blocks", str(pairs)]
    answer = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1])
    intervals = []
    for of, name in enumerate(("by the clock", "by processor time")):
        plain, captured = ([paces[of] for paces in side] for side in zip(*answer["pairs"], strict=True))
        ratios = [ours / theirs for ours, theirs in zip(captured, plain, strict=True)]
        low, high = interval_of_median(ratios)
        added_us = statistics.median(map(operator.sub, captured, plain)) / 1e3
        middle, step_us = statistics.median(ratios), statistics.median(plain) / 1e3
        print(f"  {name:18} {middle:.3f} × (95 %: {low:.3f}–{high:.3f}); {added_us:+.0f} µs to {step_us:.0f} µs")
        intervals.append((low, high))
    print(f"  events of a step that the journal of files hears of: {answer['audit_events']:.0f}")
    return intervals[0]


def _between_processes(folder: Path, rounds: int) -> None:
    ratios_by_pair: dict[str, list[float]] = {"captured / plain": [], "plain / plain": []}
    for _ in range(rounds):
        before, captured, after = _plain(folder), _captured(folder), _plain(folder)
        ratios_by_pair["captured / plain"].append(captured / math.sqrt(before * after))
        ratios_by_pair["plain / plain"].append(after / before)
    for name, ratios in ratios_by_pair.items():
        logs = [math.log(each) for each in ratios]
        middle, half = statistics.fmean(logs), half_width_of_mean(logs, CONFIDENCE)
        low, high = math.exp(middle - half), math.exp(middle + half)
        each = ", ".join(f"{ratio:.3f}" for ratio in ratios)
        print(f"  {name:18} {math.exp(middle):.3f} × (95 %: {low:.3f}–{high:.3f}; {each})")


def _plain(folder: Path) -> float:
    file = folder / _SCRIPTS_FILE
    subprocess.run([sys.executable, str(SCRIPT), str(_STEPS), str(file)], check=True)
    return paces(str(file))[0]


def _captured(folder: Path) -> float:
    """The step time that a capture states."""
    given = [str(_STEPS), str(folder / _SCRIPTS_FILE)]
    with process.scratch() as scratch:
        job = Job(stage="measure", program=str(SCRIPT), is_script=True, folder=str(folder), arguments=given)
        result = process.perform(job, scratch, folder / "captured.log", 600)
    assert result.measured is not None, result.error
    return result.measured.step_ns


if __name__ == "__main__":
    sys.exit(main())
