"""Do the traces and the unprofiled passes agree on a difference?

A difference between traces rests on one trace each, and on steps that the profiler slows down. Where unprofiled passes
were compared, they decide.
"""

from typing import Literal

from tracekit.compare import Difference
from tracekit.unprofiled import Contrast

# `opposite`: unprofiled, the other one is faster; `unsure`: unprofiled, it is not known that they differ.
Contradiction = Literal["", "opposite", "unsure"]


def contradiction(contrast: Contrast | None, wall: Difference) -> Contradiction:
    """How the unprofiled passes contradict the difference in wall time; empty if they do not, or were not compared."""
    if contrast is None:
        return ""
    if contrast.noise:
        return "" if wall.is_noise() else "unsure"
    return "opposite" if (contrast.ratio > 1) != (wall.delta_ns > 0) else ""
