"""The options of a capture: what to capture, and how thoroughly."""

from collections.abc import Callable, Sequence
from pathlib import Path

from tracekit.capture import messages
from tracekit.run.settings import BACKEND, TIMEOUT_S, Settings

# Unless the intervals are narrow earlier. On a machine that others disturb for seconds at a time, a minute has enough
# quiet ones for a check to see a tenth.
_MIN_SECONDS_FOR_ROUNDS = 60
_SECONDS_A_VARIANT = 30
_MAX_SECONDS_FOR_ROUNDS = 600  # unless requested


class Options(Settings, frozen=True):
    """The options of one capture, beside the settings of its passes. All but the program have defaults."""

    program: str | Path  # a recipe or a script
    variants: Sequence[str] = ()  # none: eager, compiled and the recipe's own
    device: str = "auto"  # cuda if there is one
    backend: str = BACKEND
    timeout: float = TIMEOUT_S
    passes: int = 100  # unprofiled ones of a variant, at most
    budget: float | None = None  # seconds for the later passes of all variants; None: depends on their number
    precision: float | None = None  # to which the ratios must be known, as a share; None: 2 %, if the budget lasts
    min_detectable: float | None = None  # passes are taken until a check of two such captures would see it; a share
    explain_time: bool = False  # at the end, say where the time of the capture went
    seeds: int = 3  # to train each variant with, from `seed` on
    out: str | Path = "run.json"
    tell: Callable[[str], None] = messages.on_stderr

    def seconds_for_rounds(self, variants: int, first_s: float) -> float:
        """Seconds for the later passes of so many variants: those requested, or as long as the first ones took, within
        bounds."""
        if self.passes == 1:
            return 0.0
        if self.budget is not None:
            return self.budget
        if self.min_detectable is not None or self.precision is not None:
            return _MAX_SECONDS_FOR_ROUNDS
        return min(_MAX_SECONDS_FOR_ROUNDS, max(_MIN_SECONDS_FOR_ROUNDS, _SECONDS_A_VARIANT * variants, first_s))
