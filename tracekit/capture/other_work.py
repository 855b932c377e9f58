"""How much other work runs on the machine at this moment, and how many threads that leaves for steps.

A step with a thread on each core waits for whichever of them is disturbed. The load average looks back a minute; the
number of processes that run right now does not, but it fluctuates, so it is looked at for a while.
"""

import time
from contextlib import suppress
from pathlib import Path

_LOOKS, _BETWEEN_S = 25, 0.002
_BUSY = 0.5  # processes that run besides this one, on average


def running_beside() -> float | None:
    """How many other processes ran, on average over 50 ms; None where the system does not say."""
    counts = []
    with suppress(OSError, ValueError, IndexError):
        for _ in range(_LOOKS):
            running, _, _ = Path("/proc/loadavg").read_text().split()[3].partition("/")
            counts.append(max(int(running) - 1, 0))
            time.sleep(_BETWEEN_S)
    return sum(counts) / len(counts) if counts else None


def threads_beside(cores: int | None) -> int | None:
    """One thread fewer than cores if other work runs; None if steps may have as many as PyTorch chooses."""
    if cores is None or cores < 2:
        return None
    running = running_beside()
    return cores - 1 if running is not None and running >= _BUSY else None
