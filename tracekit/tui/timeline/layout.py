"""Which lanes are on which rows of the screen: one on each if they fit, or else the last ones in pairs."""

from collections.abc import Sequence
from dataclasses import dataclass

from tracekit.timeline import Family, Index

_MAY_SHARE: tuple[Family, ...] = ("frames", "host")
_FRAMES = 4  # rows of Python frames that are shown at first; the others are below the screen


@dataclass(frozen=True)
class Row:
    """A row of a variant: one or two lanes of a group, whose first row has the `title`."""

    group: int
    lanes: tuple[int] | tuple[int, int]
    title: str = ""


def rows(index: Index, room: int, share: bool = True) -> list[Row]:
    """All lanes of a variant from top to bottom; if they do not all fit, the last ones share rows."""
    excess = sum(len(group.lanes) for group in index.groups) - room if share else 0
    laid: list[Row] = []
    for number, group in reversed([*enumerate(index.groups)]):
        count = len(group.lanes)
        pairs = min(count // 2, max(excess, 0)) if group.family in _MAY_SHARE else 0
        excess -= pairs + (max(count - pairs - _FRAMES, 0) if group.family == "frames" else 0)
        single = count - 2 * pairs
        lanes: list[tuple[int] | tuple[int, int]] = [(lane,) for lane in range(single)]
        lanes += [(lane, lane + 1) for lane in range(single, count, 2)]
        laid[:0] = [Row(number, each, group.title if not k else "") for k, each in enumerate(lanes)]
    return laid


def heights(wanted: Sequence[int], room: int) -> list[int]:
    """How many rows each variant gets: as many as it wants, or an equal part of what is left."""
    given = [0] * len(wanted)
    for number, _ in sorted(enumerate(wanted), key=lambda each: each[1]):
        waiting = sum(1 for each in given if not each)
        given[number] = max(min(wanted[number], room // waiting), 1)
        room -= given[number]
    return given
