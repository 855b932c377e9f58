"""How much memory does this process hold before the first step, and at the peak of the timed steps? And, where it ran
out: how much was asked for, and how much was free?
"""

import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from tracekit.base.units import size
from tracekit.capture.child import timing
from tracekit.capture.device import free_bytes, gpu, is_gpu
from tracekit.run import Memory

_REFILL_STEPS = 2
_CLEAR, _STATUS = Path("/proc/self/clear_refs"), Path("/proc/self/status")  # of Linux
_AMOUNT = r"([\d.]+ (?:bytes|[KMGTPE]iB))"
_ASKED = re.compile(rf"(?:tried|unable|failed) to allocate {_AMOUNT}", re.IGNORECASE)
_FREE = re.compile(rf"{_AMOUNT} (?:is )?free\b")  # PyTorch's words, today's and those of 1.x
_OF_A_GPU = re.compile(r"CUDA|HIP\b|CUBLAS|HIPBLAS|\bGPU\b", re.IGNORECASE)


class MemoryMeter:
    """Measures memory from its creation before the first step; what is held then, model and data, is the start."""

    def __init__(self, device: str) -> None:
        self._device = device
        self._on_gpu = is_gpu(device)
        self._before_timed: Mapping[str, Any] = {}
        self._lifetime_peak = self._reserved_before = 0
        self._start = Memory(start_rss_bytes=_status("VmRSS"))
        if self._on_gpu:
            self._start = replace(self._start, start_allocated_bytes=gpu().memory_allocated(device))

    def forget_peaks(self) -> timing.Steps[int]:
        """Discard the peaks of autotuning and compiling; returns how many steps that took."""
        steps = _REFILL_STEPS if self._on_gpu else 0
        if self._on_gpu:
            gpu().synchronize(self._device)
            gpu().empty_cache()
            for _ in range(steps):  # the allocator reserves again what the training needs
                yield
            gpu().synchronize(self._device)
            self._reserved_before = gpu().max_memory_reserved(self._device)
            gpu().reset_peak_memory_stats(self._device)
            self._before_timed = gpu().memory_stats(self._device)
        self._lifetime_peak = _host_peak() or 0
        with suppress(OSError):
            _CLEAR.write_text("5")  # proc(5): resets the peak of the resident memory to its current size
        return steps

    def peaks(self, steps: int = 0) -> Memory:
        """The most memory held since, and what the allocator did per step in that many steps."""
        in_steps = _status("VmHWM") if self._lifetime_peak else None
        known_peaks = [peak for peak in (in_steps, _host_peak()) if peak is not None]
        memory = replace(
            self._start,
            host_peak_rss_bytes=max(self._lifetime_peak, *known_peaks) if known_peaks else None,
            step_peak_rss_bytes=in_steps,
        )
        if not self._on_gpu:
            return memory
        stats: Mapping[str, Any] = gpu().memory_stats(self._device)

        def in_a_step(name: str) -> int | None:
            is_known = steps and name in stats and name in self._before_timed
            return round((stats[name] - self._before_timed[name]) / steps) if is_known else None

        reserved = gpu().max_memory_reserved(self._device)
        free, total = gpu().mem_get_info(self._device)
        outside = total - free - gpu().memory_reserved(self._device)
        return replace(
            memory,
            peak_allocated_bytes=gpu().max_memory_allocated(self._device),
            peak_reserved_bytes=reserved,
            device_peak_bytes=outside + max(reserved, self._reserved_before),
            device_total_bytes=total,
            allocated_in_step_bytes=in_a_step("allocated_bytes.all.allocated"),
            allocations_in_step=in_a_step("allocation.all.allocated"),
            split_peak_bytes=stats.get("inactive_split_bytes.all.peak"),
            alloc_retries=stats.get("num_alloc_retries"),
        )


def _host_peak() -> int | None:
    """The peak of the process's resident memory, bytes, since it was last reset if the system supports that."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _status(name: str) -> int | None:
    """A value of the process's status on Linux, bytes; None on other systems."""
    with suppress(OSError, ValueError, IndexError):
        for line in _STATUS.read_text().splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) * 1024
    return None


def out_of_memory(text: str) -> str:
    """`out of memory: 16.0 GiB asked for, 1.00 GiB free on the GPU`, as far as it is known; `text` is the error's.

    What is free, where the error does not say it, is asked of the system: by then, part of what was in use may be free.
    """
    on_gpu = _OF_A_GPU.search(text) is not None
    requested, free = _ASKED.search(text), _FREE.search(text)
    if free:
        free_size = _as_size(free[1])
    else:
        free_now = free_bytes() if on_gpu else free_on_host()
        free_size = size(free_now) if free_now is not None else ""
    facts = [f"{_as_size(requested[1])} asked for"] if requested else []
    facts += [f"{free_size} free on the {'GPU' if on_gpu else 'host'}"] if free_size else []
    return f"out of memory: {', '.join(facts)}" if facts else text


def _as_size(amount: str) -> str:
    number, unit = amount.split()
    return size(int(number)) if unit == "bytes" and number.isdigit() else amount


def free_on_host() -> int | None:
    """What the machine, the container and the limits of the process leave, whichever is least; None if unknown."""
    limits = []
    with suppress(OSError, ValueError, IndexError):
        lines = Path("/proc/meminfo").read_text().splitlines()
        limits.append(next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")))
    with suppress(OSError, ValueError):
        group = Path("/sys/fs/cgroup")
        most, now = (int((group / f"memory.{kind}").read_text()) for kind in ("max", "current"))
        limits.append(max(most - now, 0))
    with suppress(ImportError, OSError, ValueError, IndexError):
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit != resource.RLIM_INFINITY:
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            limits.append(max(limit - pages * resource.getpagesize(), 0))
    return min(limits, default=None)
