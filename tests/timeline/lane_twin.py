"""What a lane must contain, computed nanosecond by nanosecond and event by event."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from tracekit.timeline import NONE

Event = tuple[int, int, int]  # start, end, category


def clipped(events: list[Event]) -> list[Event]:
    """Each event up to where the next one starts."""
    nexts = [*(start for start, _, _ in events[1:]), 10**9]
    return [(start, min(end, following), kind) for (start, end, kind), following in zip(events, nexts, strict=False)]


def columns(events: list[Event], edges: list[int]) -> list[tuple[dict[int, int], set[int]]]:
    """For each column, how long each category covers it, and which events are in it, including those of no length."""
    answer = []
    for low, high in pairwise(edges):
        covered: Counter[int] = Counter()
        present = set()
        for position, (start, end, kind) in enumerate(events):
            moments = sum(start <= moment < end for moment in range(low, high))
            if moments:
                covered[kind] += moments
            if moments or low <= start < high:
                present.add(position)
        answer.append((dict(covered), present))
    return answer


def longest(events: list[Event], first: int, beyond: int) -> int:
    """The duration of the longest of a range of events; NONE if the range is empty."""
    return max((end - start for start, end, _ in events[first:beyond]), default=NONE)


def first_fit(events: list[Event], most: int) -> list[list[int]]:
    """Each event on the first row that is free when it starts, or else on the last."""
    rows: list[list[int]] = []
    free: list[int] = []
    for position, (start, end, _) in enumerate(events):
        row = next((number for number, until in enumerate(free) if start >= until), len(free))
        if row >= most - 1:
            row = most - 1
        if row == len(rows):
            rows.append([])
            free.append(0)
        rows[row].append(position)
        free[row] = end
    return rows
