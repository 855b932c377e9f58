"""Plain runs of a script and captures of it, and the ratio that each shows."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

from msgspec import Struct

from tracekit import run as runs
from tracekit.run.contrast import contrast
from tracekit.statistics.uncertainty import CONFIDENCE, Prior, half_width_of_typical, typical

SCRIPTS = Path(__file__).parent / "scripts"
NAMES = sorted(path.stem for path in SCRIPTS.glob("*.py") if path.stem != "clock")
PAIRS, BUDGET_S = 6, 60
_PROCESSES_DIFFER = Prior(0.03, 4)


class Plain(Struct):
    """What a plain run says of itself."""

    step_ns: float
    faults: float  # minor ones a step


class Ratio(Struct):
    """The step time of compiled over that of eager, as a logarithm, and half of its interval."""

    log: float
    half: float

    @property
    def is_sure(self) -> bool:
        """Whether it is known on which side of 1 it lies."""
        return abs(self.log) > self.half


def plain(script: Path, compiled: bool, caches: Path, threads: int = 0) -> Plain:
    """Run `python SCRIPT`."""
    environment = {**os.environ, "PLAIN_CLOCK": "1", "TORCHINDUCTOR_CACHE_DIR": str(caches)}
    environment |= {"PLAIN_COMPILE": "1"} if compiled else {}
    environment |= {"OMP_NUM_THREADS": str(threads)} if threads else {}
    ran = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, check=True)
    return Plain(**json.loads(ran.stdout))


def plain_ratio(script: Path, caches: Path, pairs: int = PAIRS) -> Ratio:
    """The ratio of plain runs in turn; the first compiled one fills the caches, and does not count."""
    plain(script, True, caches)
    logs = []
    for number in range(pairs):
        order = (False, True) if number % 2 else (True, False)
        took = {compiled: plain(script, compiled, caches).step_ns for compiled in order}
        logs.append(math.log(took[True] / took[False]))
    return Ratio(typical(logs), half_width_of_typical(logs, CONFIDENCE, _PROCESSES_DIFFER))


def captured_ratio(script: Path, out: Path, *options: str) -> Ratio:
    """The ratio of a capture as users take it."""
    command = [sys.executable, "-m", "tracekit", "capture", str(script), "-o", str(out), *options]
    subprocess.run(command, check=True, capture_output=True)
    eager, compiled = (variant.measured for variant in runs.read(out).variants)
    assert eager is not None
    assert compiled is not None
    compared = contrast(compiled, eager)
    assert compared.interval is not None
    low, high = compared.interval
    return Ratio(math.log(compared.ratio), math.log(high / low) / 2)
