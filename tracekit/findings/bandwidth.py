"""How much of the memory's bandwidth do large elementwise kernels achieve?"""

import logging
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tracekit.findings.traffic import moved
from tracekit.intervals import Ints
from tracekit.profile import Profile
from tracekit.profile.memory_bandwidth import memory_bandwidth
from tracekit.units import percent, size

_LARGE = 128 << 20  # bytes: half of them, an input, are more than the caches of most GPUs hold
_IMPOSSIBLE = 1.02  # of the peak: times are rounded
_LOG = logging.getLogger("tracekit")


@dataclass(frozen=True)
class Achieved:
    """The large elementwise kernels of one step whose shapes are known, and the memory bandwidth of the GPU."""

    rows: Ints
    bytes: Ints
    per_second: NDArray[np.float64]
    device: str | None  # None where its bandwidth is not known
    peak: float | None  # bytes a second


def achieved(profile: Profile) -> Achieved | None:
    """The bandwidth that such kernels achieve; None if none is large enough, or no shapes were recorded."""
    work = moved(profile)
    large = work.bytes >= _LARGE
    rows, sizes = work.rows[large], work.bytes[large]
    if not len(rows):
        return None
    device, peak = memory_bandwidth(profile.trace) or (None, None)
    rates = sizes / profile.trace.dur_ns[rows] * 1e9
    wrong = rates > _IMPOSSIBLE * (peak or math.inf)
    if wrong.any():
        name = profile.trace.names[profile.trace.name_codes[rows[wrong][0]]]
        _LOG.warning("%s: too many bytes are counted, for more than %s has moves them: %s", profile.name, device, name)
    right = ~wrong
    return Achieved(rows[right], sizes[right], rates[right], device, peak) if right.any() else None


def sentence(profile: Profile) -> str:
    """In words: what large elementwise kernels move, as a share of the GPU's memory bandwidth where that is known."""
    reached = achieved(profile)
    if reached is None:
        return ""
    rate = float(reached.bytes.sum() / profile.trace.dur_ns[reached.rows].sum()) * 1e9
    said = f"large elementwise kernels move {size(rate)}/s"
    if reached.peak is None:
        return f"{said}; the memory bandwidth of this GPU is not known"
    return f"{said}, {percent(rate / reached.peak)} of the memory bandwidth of {reached.device}"
