"""How much of the machine is left for steps: does other work run on it, and does each core run undisturbed?

A step with a thread on each core waits for whichever of them is disturbed. The load average looks back a minute; the
number of processes that run right now does not, but it fluctuates, so it is looked at for a while. On a machine that is
shared with others, as most virtual ones are, that number tells nothing: there, one thread on each core shows whether
they run beside each other.
"""

import hashlib
import os
import statistics
import threading
import time
from contextlib import suppress
from pathlib import Path

_LOOKS, _BETWEEN_S = 25, 0.002
_MIN_BUSY_PROCESSES = 0.5  # processes that run besides this one, on average
_DATA, _TRIES = bytes(4_000_000), 100  # hashing it takes about 2 ms, without Python's lock
_AS_IF_SHARED = 1.6  # times as long as alone: 2 where two threads share a core
_PROCESSORS = Path("/sys/devices/system/cpu")
_MOST_SHARED = 2  # of the tries: anything disturbs a core now and then


def running_beside() -> float | None:
    """How many other processes ran, on average over 50 ms; None where the system does not say."""
    counts = []
    with suppress(OSError, ValueError, IndexError):
        for _ in range(_LOOKS):
            running, _, _ = Path("/proc/loadavg").read_text().split()[3].partition("/")
            counts.append(max(int(running) - 1, 0))
            time.sleep(_BETWEEN_S)
    return sum(counts) / len(counts) if counts else None


def tries_shared(threads: int) -> int:
    """In how many of the tries one of so many threads took as long as if it shared a core with another."""
    alone = statistics.median(_slowest_s(1) for _ in range(_TRIES // 4))
    return sum(_slowest_s(threads) > _AS_IF_SHARED * alone for _ in range(_TRIES))


def why_one_fewer(cores: int | None) -> str:
    """Why steps get one thread fewer than there are cores; empty if they may have as many as PyTorch chooses."""
    if cores is None or cores < 2:
        return ""
    running = running_beside()
    if running is not None and running >= _MIN_BUSY_PROCESSES:
        return "other work runs on this machine"
    if (shared := tries_shared(cores)) <= _MOST_SHARED:
        return ""
    return f"in {shared} of {_TRIES} tries, as many threads as cores did not run at the same time"


def cores_of(usable: int | None) -> int | None:
    """How many of the processors that this process may use are cores: two threads of one core share what it has."""
    with suppress(OSError, AttributeError):
        siblings = {
            (_PROCESSORS / f"cpu{processor}/topology/thread_siblings_list").read_text().strip()
            for processor in os.sched_getaffinity(0)
        }
        return min(len(siblings), usable) if usable else None
    return usable


def _slowest_s(threads: int) -> float:
    """How long the slowest of so many threads takes, each by its own clock, s."""
    durations_s: list[float] = []
    gate = threading.Barrier(threads)

    def hash_it() -> None:
        gate.wait()
        began = time.perf_counter()
        hashlib.sha256(_DATA)
        durations_s.append(time.perf_counter() - began)

    started = [threading.Thread(target=hash_it) for _ in range(threads)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    return max(durations_s)
