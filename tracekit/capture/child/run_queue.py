"""How long the thread that drives the steps has waited for a core because others ran there: the kernel counts it.

A process that takes turns has no other work of its own beside its steps, so what it waits for a core is the work of
others, and no part of a step: `what the clock says − what it waited for a core` goes on as if the machine were quiet.
Waiting for anything else – data, a lock, its own threads – is not in it.

Source: the second figure of `schedstat`, "time spent waiting on a runqueue" (Documentation/scheduler/sched-stats.rst).
"""

import os
import threading
import time
from contextlib import suppress

_LONGEST = 64  # bytes of three numbers


class RunQueue:
    """The clock of the calling thread, without its waits for a core; without `schedstat`, that of the wall."""

    def __init__(self) -> None:
        self._file: int | None = None
        with suppress(OSError, ValueError, IndexError):
            self._file = os.open(f"/proc/self/task/{threading.get_native_id()}/schedstat", os.O_RDONLY)
            if not self.waited_ns() and not int(os.pread(self._file, _LONGEST, 0).split()[0]):
                self._close()  # a kernel that counts nothing

    def __del__(self) -> None:
        self._close()

    @property
    def is_known(self) -> bool:
        """Whether the system says how long a thread waits for a core."""
        return self._file is not None

    def waited_ns(self) -> int:
        """How long the thread has waited for a core since it was started, ns; 0 if the system does not say."""
        return int(os.pread(self._file, _LONGEST, 0).split()[1]) if self._file is not None else 0

    def now_ns(self) -> int:
        """What the clock says, without the time in which the thread waited for a core, ns."""
        return time.perf_counter_ns() - self.waited_ns()

    def _close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
