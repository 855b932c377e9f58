"""What is said of memory that ran out: how much was asked for, and how much was free."""

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tracekit.units import size

_AMOUNT = r"([\d.]+ (?:bytes|[KMGTPE]iB))"
_ASKED = re.compile(rf"(?:tried|unable|failed) to allocate {_AMOUNT}", re.IGNORECASE)
_FREE = re.compile(rf"{_AMOUNT} (?:is )?free\b")  # PyTorch's words, today's and those of 1.x
_OF_A_GPU = re.compile(r"CUDA|HIP\b|CUBLAS|HIPBLAS|\bGPU\b", re.IGNORECASE)


def out_of_memory(text: str) -> str:
    """`out of memory: 16.0 GiB asked for, 1.00 GiB free on the GPU`, as far as it is known; `text` is the error's.

    What is free, where the error does not say it, is asked of the system: by then, part of what was in use may be free.
    """
    on_gpu = _OF_A_GPU.search(text) is not None
    requested, free = _ASKED.search(text), _FREE.search(text)
    free_size = _as_size(free[1]) if free else _now(_free_on_gpu() if on_gpu else free_on_host())
    facts = [f"{_as_size(requested[1])} asked for"] if requested else []
    facts += [f"{free_size} free on the {'GPU' if on_gpu else 'host'}"] if free_size else []
    return f"out of memory: {', '.join(facts)}" if facts else text


def _as_size(amount: str) -> str:
    number, unit = amount.split()
    return size(int(number)) if unit == "bytes" and number.isdigit() else amount


def _now(free_bytes: int | None) -> str | None:
    return size(free_bytes) if free_bytes is not None else None


def _free_on_gpu() -> int | None:
    import torch

    with suppress(RuntimeError, AssertionError):
        return int(torch.cuda.mem_get_info()[0])
    return None


def free_on_host() -> int | None:
    """What the machine, the container and the limits of the process leave, whichever is least; None if unknown."""
    return min(_limits(), default=None)


def _limits() -> Iterator[int]:
    with suppress(OSError, ValueError, IndexError):
        lines = Path("/proc/meminfo").read_text().splitlines()
        yield next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    with suppress(OSError, ValueError):
        group = Path("/sys/fs/cgroup")
        yield max(int((group / "memory.max").read_text()) - int((group / "memory.current").read_text()), 0)
    with suppress(ImportError, OSError, ValueError, IndexError):
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit != resource.RLIM_INFINITY:
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            yield max(limit - pages * resource.getpagesize(), 0)
