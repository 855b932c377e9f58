"""Which part of each variant is on the screen: all are locked to one step, and to one offset from its start."""

from collections.abc import Sequence
from functools import cached_property
from typing import Literal

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tracekit.timeline import Index

Lock = Literal["ns", "share"]
LEAST = 1000  # ns: no picture has more columns, and each column is at least a nanosecond
_MARGIN = 0.02  # on both sides of what is fitted to the screen


class Viewport(Struct, frozen=True, dict=True):
    """A window `[low, high)` of the leading variant, in ns from the start of its step.

    The others show the same offsets of the same step or, if locked by `share`, the same shares of it.
    """

    variants: tuple[Index, ...]
    step: int  # ordinal of the step that each variant shows
    low: int
    high: int
    lead: int = 0
    lock: Lock = "ns"

    @staticmethod
    def of(variants: Sequence[Index]) -> "Viewport":
        """A typical step of the first variant."""
        return Viewport(tuple(variants), variants[0].typical_step, 0, LEAST).fitted()

    @property
    def span(self) -> int:
        """How much of the leading variant is on the screen, in ns."""
        return self.high - self.low

    def has_step(self, variant: int) -> bool:
        """Whether a variant has this step; only then does it have a window, and can offsets be moments on its clock."""
        return self.step < len(self.variants[variant].step_bounds[0])

    def begin(self, variant: int) -> int:
        """When the step begins, in ns on the variant's clock."""
        return int(self.variants[variant].step_bounds[0][self.step])

    def length(self, variant: int) -> int:
        """The duration of the step, at least 1 ns."""
        lows, highs = self.variants[variant].step_bounds
        return max(int(highs[self.step] - lows[self.step]), 1)

    def window(self, variant: int) -> tuple[int, int]:
        """The window of a variant, in ns on its own clock."""
        low = self.moment(variant, self.low)
        return low, max(self.moment(variant, self.high), low + LEAST)

    def moment(self, variant: int, offset: int) -> int:
        """An offset of the leading variant as a moment on a variant's clock, in ns."""
        if self.lock == "share" and variant != self.lead:
            offset = offset * self.length(variant) // self.length(self.lead)
        return self.begin(variant) + offset

    def offset(self, variant: int, moment: int) -> int:
        """A moment on a variant's clock as an offset of the leading one."""
        offset = moment - self.begin(variant)
        if self.lock == "ns" or variant == self.lead:
            return offset
        return offset * self.length(self.lead) // self.length(variant)

    @cached_property
    def _variants_with_step(self) -> list[int]:
        return [variant for variant in range(len(self.variants)) if self.has_step(variant)]

    @cached_property
    def bounds(self) -> tuple[int, int]:
        """The time from the first event of any variant to the end of the last, as offsets."""
        low = min(self.offset(variant, self.variants[variant].low) for variant in self._variants_with_step)
        high = max(self.offset(variant, self.variants[variant].high) for variant in self._variants_with_step)
        return low, max(high, low + LEAST)

    def to(self, low: int, high: int) -> "Viewport":
        """Another window, moved or narrowed so that it stays within what was recorded."""
        first, last = self.bounds
        span = min(max(high - low, LEAST), last - first)
        begins = min(max((low + high - span) // 2, first), last - span)
        return replace(self, low=begins, high=begins + span)

    def anchored(self) -> "Viewport":
        """The same part of the leading variant, locked to the step in the middle of it.

        With several steps on the screen nothing changes, because the other variants would jump.
        """
        lows = self.variants[self.lead].step_bounds[0]
        begin = self.begin(self.lead)
        middle = begin + (self.low + self.high) // 2
        step = max(int(np.searchsorted(lows, middle, side="right")) - 1, 0)
        if step == self.step or self.span > 2 * self.length(self.lead):
            return self
        shift_ns = int(lows[step]) - begin
        return replace(self, step=step, low=self.low - shift_ns, high=self.high - shift_ns)

    def panned(self, share: float) -> "Viewport":
        """Moved by a share of what is on the screen; to the left if it is negative."""
        shift_ns = round(self.span * share)
        return self.to(self.low + shift_ns, self.high + shift_ns).anchored()

    def zoomed(self, factor: float, anchor_share: float = 0.5) -> "Viewport":
        """Zoomed by a factor; what is at the point `anchor_share` of the width stays there."""
        span = max(round(self.span / factor), LEAST)
        low = self.low + round((self.span - span) * anchor_share)
        return self.to(low, low + span)

    def fitted(self) -> "Viewport":
        """The whole step, as long as it takes in the slowest variant."""
        ends = (
            self.offset(variant, self.begin(variant) + self.length(variant)) for variant in self._variants_with_step
        )
        length = max(ends)
        margin = int(length * _MARGIN)
        return self.to(-margin, length + margin)

    def everything(self) -> "Viewport":
        """Everything that was recorded."""
        return self.to(*self.bounds)

    def at_step(self, step: int) -> "Viewport":
        """The same offsets of another step, or of the nearest that exists. A variant that has the step leads."""
        step_count = max(len(index.step_bounds[0]) for index in self.variants)
        step = min(max(step, 0), step_count - 1)
        having = [variant for variant, index in enumerate(self.variants) if step < len(index.step_bounds[0])]
        view = replace(self, step=step, lead=self.lead if self.lead in having else having[0])
        return view.to(view.low, view.high)

    def locked(self, lock: Lock) -> "Viewport":
        """Locked by time or by the share of the step."""
        view = replace(self, lock=lock)
        return view.to(view.low, view.high)

    def showing(self, variant: int, start: int, end: int) -> "Viewport":
        """Moved as little as needed to bring a stretch of a variant, in ns on its clock, onto the screen."""
        low, high = self.offset(variant, start), self.offset(variant, end)
        if self.low <= low and high <= self.high:
            return self
        if high - low > self.span:
            return self.near(variant, start, end)
        middle = (low + high) // 2
        return self.to(middle - self.span // 2, middle + self.span // 2)

    def near(self, variant: int, start: int, end: int) -> "Viewport":
        """Zoomed so that a stretch of a variant takes half the width."""
        low, high = self.offset(variant, start), self.offset(variant, end)
        margin = max((high - low) // 2, 1)
        return self.to(low - margin, high + margin)
