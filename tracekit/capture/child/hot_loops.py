"""Marks of lines where a hot loop has no more of them: its lines share the time as they did while they had some.

Within a step, a line of a hot loop is reported often enough to see what a round is made of, and then no more. What
passes until another line is reported is time of the loop. Where the loop runs again in the same step, the line before
it is reported, and the loop is not: what that line takes beyond its usual time is the loop's, too.
"""

import statistics
from collections import Counter, defaultdict, deque
from collections.abc import Sequence
from itertools import pairwise
from types import CodeType
from typing import NamedTuple

from tracekit.vocabulary.lines_file import Mark

MOST_ARRIVALS = 64  # of a line in a step, before it is seen whether it is in a hot loop


class Row(NamedTuple):
    """A mark as it is taken."""

    ns: int
    place: int  # −1: none
    thread: int
    is_off: int  # from here on, the place is reported no more in this step


def told(rows: Sequence[Row], places: Sequence[tuple[CodeType, int]], thread: int) -> list[Mark]:
    """The marks of one thread, in order of time."""
    loops, marks = _Loops(rows, places), []
    for number, row in enumerate(rows[:-1]):
        begin_ns = row.ns
        for place, ns in loops.parts(number):
            marks.append(Mark(begin_ns, place, thread, int(row.is_off or place != row.place)))
            begin_ns += ns
    return [*marks, *(Mark(row.ns, row.place, thread) for row in rows[-1:])]


class _Loops:
    """What the rows so far say of loops."""

    def __init__(self, rows: Sequence[Row], places: Sequence[tuple[CodeType, int]]) -> None:
        self._rows, self._places = rows, places
        self._arrivals: dict[int, deque[int]] = defaultdict(lambda: deque(maxlen=MOST_ARRIVALS))  # rows of each place
        # What each place took until another one followed, while both were reported, ns.
        self._took_ns: dict[tuple[int, int], deque[int]] = defaultdict(lambda: deque(maxlen=MOST_ARRIVALS))
        self._followers: dict[int, set[int]] = defaultdict(set)
        self._off: dict[int, Counter[int]] = {}  # the places that are off, and how the lines of their loops share time

    def parts(self, number: int) -> list[tuple[int, int]]:
        """The places that share the time between a row and the next, and the part of each, ns; rows in their order."""
        row, after = self._rows[number], self._rows[number + 1]
        if row.place in self._off:  # it is reported again: another step has begun
            self._off.clear()
        self._arrivals[row.place].append(number)
        passed_ns = after.ns - row.ns
        if row.is_off:
            self._off[row.place] = shares = self._shares(row.place)
            return _shared(passed_ns, shares) or [(row.place, passed_ns)]
        hidden = [place for place in self._followers[row.place] if place in self._off]
        if not hidden:
            self._took_ns[row.place, after.place].append(passed_ns)
            self._followers[row.place].add(after.place)
            return [(row.place, passed_ns)]
        loop = max(hidden, key=lambda place: len(self._took_ns[row.place, place]))
        own_ns = min(passed_ns, round(statistics.median(self._took_ns[row.place, loop])))
        return [(row.place, own_ns), *_shared(passed_ns - own_ns, self._off[loop])]

    def _shares(self, place: int) -> Counter[int]:
        """How long each place took since the first of the last arrivals at this one, ns: all are in its loop. A
        function whose loop is off when it is entered has the shares of that loop."""
        code, line = self._places[place]
        inside = [shares for other, shares in self._off.items() if self._places[other][0] is code]
        first = self._arrivals[place][0]
        if not line and inside and len(self._arrivals[place]) < MOST_ARRIVALS:
            return inside[-1]
        taken_ns: Counter[int] = Counter()
        for row, after in pairwise(self._rows[first : self._arrivals[place][-1] + 1]):
            if row.place >= 0 and self._places[row.place][1]:
                taken_ns[row.place] += after.ns - row.ns
        return taken_ns


def _shared(passed_ns: int, shares: Counter[int]) -> list[tuple[int, int]]:
    """That time in these proportions; empty if nothing is known of them."""
    total_ns, parts, before = sum(shares.values()), [], 0
    counted_ns = 0
    for place, ns in shares.items() if total_ns else ():
        before += ns
        until_ns = passed_ns * before // total_ns
        parts.append((place, until_ns - counted_ns))
        counted_ns = until_ns
    return parts
