"""How far is each rank's clock off, judged by the collectives that all of them took part in?"""

from dataclasses import dataclass

import numpy as np

from tracekit.intervals import Ints


@dataclass(frozen=True)
class Clock:
    """What to subtract from a rank's times, and how far the ends of single collectives still lie apart, ns."""

    offset_ns: int
    error_ns: int


def align(ends_ns: Ints) -> list[Clock]:
    """A clock per rank from the ends of matched collectives: one row per collective, one column per rank.

    A collective ends on every rank at nearly the same moment. The offset of a rank is the median of its ends relative
    to the median end over ranks; the error is the median of what is left, absolutely. Without collectives both are 0.
    """
    if not len(ends_ns):
        return [Clock(0, 0)] * ends_ns.shape[1]
    small = ends_ns - ends_ns[:, :1]  # of unix ns, floating point would keep every 256th
    relative = small - np.median(small, axis=1, keepdims=True)
    offsets = np.median(relative, axis=0)
    errors = np.median(np.abs(relative - offsets), axis=0)
    return [Clock(round(offset), round(error)) for offset, error in zip(offsets.tolist(), errors.tolist(), strict=True)]
