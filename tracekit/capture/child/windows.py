"""The windows of steps that are traced: how many steps each takes, and what it records."""

from dataclasses import dataclass
from typing import NamedTuple

from tracekit.capture.child import timing
from tracekit.run import Window


@dataclass(frozen=True)
class PlannedWindow:
    """One trace: its number of steps, the number of warm-up steps of the profiler before them, and what it records."""

    name: Window
    steps: int
    warmup: int
    options: dict[str, bool]


class Windows(NamedTuple):
    """The windows of one training, in order, with the warm-up between the first two."""

    cold: PlannedWindow | None
    most_warmup: int  # steps
    steady: PlannedWindow
    detail: PlannedWindow | None


STACKS = dict.fromkeys(("with_stack", "record_shapes", "profile_memory", "with_modules"), True)
COLD = PlannedWindow("cold", steps=3, warmup=0, options={})
DETAIL = PlannedWindow("detail", steps=3, warmup=1, options=STACKS)
STEADY_WARMUP = 2
# Where steps are few, the steady window comes first, because the report's numbers are from it.
_LEAST_FOR_COLD = 8  # leaves it 3 steps after its warm-up
_LEAST_FOR_DETAIL = 16  # leaves it 7
_LEAST_FOR_WARMUP = 4  # leaves it 2


def planned_windows(steps: int, available: int | None) -> Windows:
    """The windows that fit into the available steps, of which there is no end if that is None."""
    if available is None:
        return Windows(COLD, timing.MOST_WARMUP_STEPS, PlannedWindow("steady", steps, STEADY_WARMUP, {}), DETAIL)
    cold = COLD if available >= _LEAST_FOR_COLD else None
    detail = DETAIL if available >= _LEAST_FOR_DETAIL else None
    steps_left = available - sum(window.steps + window.warmup for window in (cold, detail) if window)
    warmup = STEADY_WARMUP if steps_left >= _LEAST_FOR_WARMUP else 0
    steady = PlannedWindow("steady", min(steps, steps_left - warmup), warmup, {})
    return Windows(cold, steps_left - warmup - steady.steps, steady, detail)
