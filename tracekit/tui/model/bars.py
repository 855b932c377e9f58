"""Stacked bars on one scale, in whole cells that add up."""

from dataclasses import dataclass
from fractions import Fraction

from tracekit.engine.buckets import KEYS
from tracekit.tui.model.bucket_table import BucketLine, BucketTable
from tracekit.units import apportioned

# What fills a bar besides its colour: any two buckets that can be neighbours have different patterns.
PATTERNS = " ·╱░╲-┼╳"


@dataclass(frozen=True)
class Segment:
    """A bucket's part of a bar; `cells` is its width, which is never 0."""

    line: BucketLine
    cells: int

    @property
    def text(self) -> str:
        """Text exactly as wide as the segment: its label, then the pattern."""
        return self.label + self.pattern[len(self.label) :]

    @property
    def label(self) -> str:
        """The bucket's label if it fits, or else its mark."""
        return f" {self.line.label} " if len(self.line.label) + 2 <= self.cells else self.line.mark

    @property
    def pattern(self) -> str:
        """The pattern, as wide as the segment."""
        return pattern(self.line.key) * self.cells


@dataclass(frozen=True)
class Bar:
    """One variant's step; `cells` is the sum of the segments' cells."""

    name: str
    segments: list[Segment]
    value: str

    @property
    def cells(self) -> int:
        """The length of the bar."""
        return sum(segment.cells for segment in self.segments)


def pattern(key: str) -> str:
    """The character that fills the bars of a bucket."""
    return PATTERNS[KEYS.index(key) % len(PATTERNS)] if key in KEYS else " "


def bars(numbers: BucketTable, width: int) -> list[Bar]:
    """A bar for each variant; the longest is `width` cells long."""
    total = numbers.total
    if total is None:
        return []
    longest = max(share.thousandths for share in total.shares.values())
    return [_bar(numbers, total, name, width, max(longest, 1)) for name in numbers.names]


def _bar(numbers: BucketTable, total: BucketLine, name: str, width: int, longest: int) -> Bar:
    buckets = numbers.lines[:-1]
    cells = apportion([line.shares[name].thousandths for line in buckets], width, longest)
    segments = [Segment(line, wide) for line, wide in zip(buckets, cells, strict=True) if wide]
    return Bar(name, segments, f"{total.shares[name].value} {numbers.unit}")


def apportion(parts: list[int], width: int, whole: int) -> list[int]:
    """The cells of each part if `whole` takes `width` cells."""
    return apportioned([Fraction(part * width, whole) for part in parts])
