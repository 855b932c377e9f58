"""Arrays that may be longer than memory should hold: a long one lies in a file that nobody else sees."""

import tempfile
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from tracekit.trace.storing import cache

LONG = 16 << 20  # bytes from which on an array goes to a file


def scratch(count: int, kind: DTypeLike) -> NDArray[Any]:
    """An array to be filled; where no file can be made, in memory."""
    if count * np.dtype(kind).itemsize < LONG:
        return np.empty(count, kind)
    try:
        folder = cache.home() / "work"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:  # it has no name, and goes with its last mapping
            return np.memmap(file, kind, "w+", shape=(count,))
    except (OSError, ValueError):
        return np.empty(count, kind)
