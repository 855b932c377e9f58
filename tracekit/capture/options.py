"""The options of a capture: what to capture, and how thoroughly."""

from collections.abc import Callable, Sequence
from pathlib import Path

from tracekit.capture import messages
from tracekit.run.settings import BACKEND, TIMEOUT_S, Settings


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
