"""How far a capture is: how long it has taken so far, and how long what is left will take, from its first stage on.

A pass of one variant takes about as long as the same pass of another, but for compiling; so the first pass shows how
long the others will take, and how long compiling takes is known once a variant has been measured.
"""

import time
from collections.abc import Sequence

from tracekit.base.units import duration
from tracekit.capture.job import Stage
from tracekit.capture.options import Options
from tracekit.capture.variants import PlannedVariant

_STAGES: tuple[Stage, ...] = ("measure", "profile", "check")
# As parts of how long the measured pass took: of what is no compiling, and of compiling, of which a part is in caches.
_SHARES: dict[Stage, tuple[float, float]] = {"measure": (1.0, 1.0), "profile": (0.9, 0.8), "check": (0.9, 0.25)}


class Course:
    """The passes that are still to come, and how long the first ones took."""

    def __init__(self, variants: Sequence[PlannedVariant], losses: bool, options: Options) -> None:
        self._began = time.monotonic()
        stages = _STAGES if losses else _STAGES[:-1]
        self._coming = [(variant, stage) for variant in variants for stage in stages]
        self._variants, self._options = variants, options
        self._plain_s: float | None = None  # the first measured pass, without compiling
        self._compiling_s: dict[str, float] = {}  # of the variants that were measured

    def begins(self, name: str, stage: Stage) -> str:
        """` (12 s so far, about 95 s left)`, as a pass begins; the passes before it in the order have ended."""
        while self._coming and (self._coming[0][0].name, self._coming[0][1]) != (name, stage):
            self._coming.pop(0)
        gone = time.monotonic() - self._began
        if self._plain_s is None:
            return f" ({duration(round(gone * 1e9))} so far)" if gone >= 1 else ""
        first_s = self._plain_s * len(self._variants) + sum(self._compiling_s.values())
        seconds_left, unknown = self._options.seconds_for_rounds(len(self._variants), first_s), False
        for variant, coming in self._coming:
            plain, compiling = _SHARES[coming]
            compiling_s = self._compiling_s.get(variant.name)
            seconds_left += plain * self._plain_s + compiling * (compiling_s or 0.0)
            unknown = unknown or (variant.requested.compile and compiling_s is None)
        clause = ", and compiling" if unknown else ""
        return f" ({duration(round(gone * 1e9))} so far, about {duration(round(seconds_left * 1e9))} left{clause})"

    def measured(self, name: str, seconds: float, compiling_s: float) -> None:
        """Note how long the measured pass of that variant took, and how much of it was compiling."""
        self._compiling_s[name] = compiling_s
        self._plain_s = max(self._plain_s or 0.0, seconds - compiling_s)
