"""The steps of a variant one by one, as a line of small bars; those that compile are marked."""

from dataclasses import dataclass

import numpy as np

from tracekit.engine import Attribution
from tracekit.intervals import Bools, Ints
from tracekit.report import Report
from tracekit.sanitize import sanitize
from tracekit.units import count, duration

COMPILES, UNKNOWN = "C", "?"
_HEIGHTS = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True)
class Pulse:
    """Durations of the steps in order, ns; the scale is the longest steady one, for compilation dwarfs the rest."""

    name: str
    durations_ns: Ints
    steady: Bools
    known: Bools
    legend: str

    def glyphs(self, width: int) -> str:
        """One cell a step, or a stretch of steps: the longest of it, `C` if any of it compiles, `?` if unknown."""
        steps = len(self.durations_ns)
        cells = min(steps, width)
        return "".join(self._glyph(slice(k * steps // cells, (k + 1) * steps // cells)) for k in range(cells))

    def _glyph(self, stretch: slice) -> str:
        if not self.steady[stretch].all():
            return COMPILES
        if not self.known[stretch].any():
            return UNKNOWN
        top = self.durations_ns[self.steady & self.known].max()
        share = self.durations_ns[stretch][self.known[stretch]].max() / max(top, 1)
        return _HEIGHTS[min(int(share * len(_HEIGHTS)), len(_HEIGHTS) - 1)]


def pulses(found: Report, clock: str) -> list[Pulse]:
    """A pulse for each variant, and one for its cold start, where that was captured."""
    lines = []
    for profile in found.profiles:
        if profile.cold is not None:
            lines.append(_pulse(f"{profile.name}, cold", profile.cold, clock))
        lines.append(_pulse(profile.name, profile.cost, clock))
    return lines


def _pulse(name: str, cost: Attribution, clock: str) -> Pulse:
    if clock == "wall":
        durations, known = cost.wall_ns, cost.wall_known
    else:
        durations, known = cost.host_ns, cost.host_known
    return Pulse(sanitize(name), durations, cost.steady, known, _legend(cost, durations, known))


def _legend(cost: Attribution, durations: Ints, known: Bools) -> str:
    if not len(durations):
        return "no steps"
    numbers = cost.trace.steps.number
    which = f"steps {numbers[0]}–{numbers[-1]}" if len(numbers) > 1 else f"step {numbers[0]}"
    said = []
    steady = durations[cost.steady & known]
    if len(steady):
        said.append(
            duration(int(steady.max()))
            if len(steady) == 1
            else f"{duration(int(steady.min()))} to {duration(int(steady.max()))}"
        )
    compiling = np.flatnonzero(~cost.steady & known)
    if len(compiling) == 1:
        said.append(f"{COMPILES} = step {numbers[compiling[0]]} compiles, {duration(int(durations[compiling[0]]))}")
    elif len(compiling):
        longest = duration(int(durations[compiling].max()))
        said.append(f"{COMPILES} = {count(len(compiling))} steps compile, up to {longest}")
    if not known.all():
        said.append(f"{UNKNOWN} = {count(int((~known).sum()))} unknown")
    return f"{which}: {'; '.join(said)}"
