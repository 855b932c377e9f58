"""How long steps took over hours, in few enough stretches to be drawn, none of which hides its longest step."""

from collections.abc import Iterator
from statistics import median_low
from typing import NamedTuple

from tracekit.watched.reading import OfRank
from tracekit.watched.record import UNKNOWN, Flag

STRETCHES = 240


class Stretch(NamedTuple):
    """Steps in a row."""

    first: int  # their numbers
    last: int
    median_ns: int
    most_ns: int
    most_number: int  # of the longest


def course(record: OfRank, most: int = STRETCHES) -> list[Stretch]:
    """All steps that are known, in at most so many stretches of equally many steps: single ones as far as they are
    left, and before them those of whole minutes, whose median is the median of the minutes' medians. Steps that were
    traced are left out."""
    known = [*_known(record)]
    if not known:
        return []
    first, total = known[0].first, known[-1].last + 1 - known[0].first
    stretches: dict[int, list[Stretch]] = {}
    for stretch in known:
        stretches.setdefault((stretch.first - first) * min(most, total) // total, []).append(stretch)
    return [_joined(parts) for parts in stretches.values()]


def _known(record: OfRank) -> Iterator[Stretch]:
    steps = [step for step in record.steps if step.step_ns != UNKNOWN and not step.flags & Flag.TRACED]
    for minute in record.minutes:
        if minute.steps and (not steps or minute.first < steps[0].number):
            last = minute.first + minute.steps - 1
            yield Stretch(minute.first, last, minute.median_ns, minute.most_ns, minute.most_number)
    for step in steps:
        yield Stretch(step.number, step.number, step.step_ns, step.step_ns, step.number)


def _joined(parts: list[Stretch]) -> Stretch:
    longest = max(parts, key=lambda part: part.most_ns)
    median_ns = median_low(part.median_ns for part in parts)
    return Stretch(parts[0].first, max(part.last for part in parts), median_ns, longest.most_ns, longest.most_number)
