"""How much memory the training has needed so far; nothing of it is ever reset."""

import sys

from tracekit.capture.device import gpu
from tracekit.watched.record import UNKNOWN

if sys.platform != "win32":  # which has no such module
    from resource import RUSAGE_SELF, getrusage

_MAXRSS_BYTES = 1 if sys.platform == "darwin" else 1024


class Memory:
    """The memory of a GPU's allocator, or of the process where there is no GPU.

    The allocator tells all its figures at once, which takes tens of µs: it must not be asked at every step.
    """

    def __init__(self, gpu_number: int | None) -> None:
        self._gpu = gpu_number
        self._retries = 0

    def look(self) -> tuple[int, int]:
        """The peak so far in bytes, and how often the allocator freed its cache since the last look."""
        if self._gpu is None:
            peak_bytes = UNKNOWN if sys.platform == "win32" else getrusage(RUSAGE_SELF).ru_maxrss * _MAXRSS_BYTES
            return peak_bytes, 0
        figures = gpu().memory_stats_as_nested_dict(self._gpu)
        if not figures:
            return UNKNOWN, 0
        before, self._retries = self._retries, figures["num_alloc_retries"]
        return figures["allocated_bytes"]["all"]["peak"], max(0, self._retries - before)
