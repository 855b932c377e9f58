"""Forks passes from a process that has imported everything: each starts at once.

With one thread, the process has also loaded its data and set up by then; with more, setting up may start a pool of
threads, so each fork does that by itself. No step has been taken: each fork allocates, compiles and trains by itself.

Where tensors lie in memory decides how well they share the caches, and the forks of one parent would all have its
heap: many pairs of them would tell little more than one. Each fork therefore scatters what it allocates, as Curtsinger
and Berger do ("Stabilizer", 2013). Four parents of a small convolutional net with four forks each differed by 12 % from
each other and by 2 % within each (standard deviations); with scattered heaps, all forks differed alike, by 9 %. They
still share where libraries lie, which is why a capture takes several parents.
"""

import ctypes
import os
import random
import signal
from pathlib import Path

from tracekit.capture.child.turns import TurnPipes
from tracekit.capture.child.unstoppable import own_processes

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_SAFE_THREADS = ("jemalloc_bg_thd",)  # jemalloc ends it before a fork, and starts it again afterwards
_ENDED = -1  # less the status of the fork, as os.waitpid gives it
_SCATTERED_BLOCKS, _MOST_BYTES = 400, 1 << 16


def set_up_may_start_threads() -> bool:
    """Whether computing takes more than one thread."""
    import torch

    threads: int = torch.get_num_threads()
    return threads > 1


def is_parent(pipes: TurnPipes) -> bool:
    """Fork whenever a turn is given, and return True once no more are wanted; False in each fork, and at once where
    forking is not proven to be safe.

    The parent waits for the end of each fork, and then says how it ended.
    """
    if why_not():
        return False
    status = 0
    while pipes.next_turn_ns(_ENDED - status):
        parent = os.getpid()
        child = os.fork()
        if not child:
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:  # it was killed earlier
                os._exit(1)
            _scatter_heap()
            return False
        status = os.waitpid(child, 0)[1]
    return True


def _scatter_heap() -> None:
    """Allocate blocks of random sizes, each magnitude as often, and never free them: some MB."""
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    sizes = random.SystemRandom()  # leaves the training's random numbers as they are
    for _ in range(_SCATTERED_BLOCKS):
        libc.malloc(ctypes.c_size_t(round(_MOST_BYTES ** sizes.random())))


def why_not() -> str:
    """Why forks of this process could hang or fail; empty if it has one thread, no process, and has touched no device.

    Threads do not survive a fork: a pool of them, such as that of OpenMP once it has computed, would be waited for
    forever. OpenBLAS ends its pool before every fork, so the first fork is a test.
    """
    import torch

    if torch.cuda.is_initialized():
        return "it has touched the GPU"
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
    names = [comm_file.read_text().strip() for comm_file in Path("/proc/self/task").glob("*/comm")]
    threads = sum(name not in _SAFE_THREADS for name in names)
    if threads != 1:
        return f"it has {threads} threads"
    return f"it has {processes} of its own" if (processes := own_processes()) else ""
