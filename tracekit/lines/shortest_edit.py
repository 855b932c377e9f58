"""Which elements of two sequences stay, if as few as possible are deleted and inserted? (Myers 1986, O(ND).)

All diagonals of one distance are advanced together: an N and a D of thousands take seconds, and D is mostly 0.
"""

import numpy as np

from tracekit.base.intervals import NO_INTS, Ints

_NEVER = -(1 << 40)
_MOST_EDITS = 6000  # whose frontiers take 150 MB; sequences further apart than that do not show the same work


def matched(first: Ints, second: Ints) -> tuple[Ints, Ints]:
    """The indices of the elements that stay, in both; only those of the common ends if too much differs."""
    limit = min(len(first), len(second))
    differs = np.flatnonzero(first[:limit] != second[:limit])
    head = int(differs[0]) if len(differs) else limit
    rest = limit - head
    differs = np.flatnonzero(first[len(first) - rest :][::-1] != second[len(second) - rest :][::-1])
    tail = int(differs[0]) if len(differs) else rest
    middle, other_middle = first[head : len(first) - tail], second[head : len(second) - tail]
    frontiers = _frontiers(middle, other_middle) if len(middle) and len(other_middle) else []
    nothing = NO_INTS
    inner, inner_other = _walked_back(frontiers, len(middle), len(other_middle)) if frontiers else (nothing, nothing)
    start, end = np.arange(head), np.arange(tail)
    return (
        np.concatenate((start, inner + head, end + len(first) - tail)),
        np.concatenate((start, inner_other + head, end + len(second) - tail)),
    )


def _frontiers(first: Ints, second: Ints) -> list[Ints]:
    """For each distance d, how far along `first` each diagonal −d, −d + 2 … d gets; empty if d becomes too large."""
    n, m = len(first), len(second)
    frontiers: list[Ints] = []
    for distance in range(min(n + m, _MOST_EDITS) + 1):
        diagonal, reach = np.arange(-distance, distance + 1, 2), np.zeros(1, np.int64)
        if frontiers:  # by an insertion, from diagonal k + 1, or by a deletion, from k − 1
            reach = np.maximum(np.append(frontiers[-1], _NEVER), np.append(_NEVER, frontiers[-1] + 1))
        # Along each diagonal as far as the elements are equal.
        live = np.flatnonzero((reach >= 0) & (reach < n) & (reach - diagonal >= 0) & (reach - diagonal < m))
        while len(live):
            x = reach[live]
            live = live[first[x] == second[x - diagonal[live]]]
            reach[live] += 1
            x = reach[live]
            live = live[(x < n) & (x - diagonal[live] < m)]
        frontiers.append(reach)
        if ((reach >= n) & (reach - diagonal >= m)).any():
            return frontiers
    return []


def _walked_back(frontiers: list[Ints], n: int, m: int) -> tuple[Ints, Ints]:
    """The diagonal runs of the shortest script, from its end."""
    x, y = n, m
    runs: list[tuple[int, int, int]] = []  # x, y, length
    for distance in range(len(frontiers) - 1, 0, -1):
        before, k = frontiers[distance - 1], x - y
        position = (k + distance) // 2  # of diagonal k among those of this distance
        inserted = int(before[position]) if position < len(before) else _NEVER
        deleted = int(before[position - 1]) + 1 if position > 0 else _NEVER
        start = max(inserted, deleted)
        runs.append((start, start - k, x - start))
        x, y = (start, start - k - 1) if inserted >= deleted else (start - 1, start - k)
    runs.append((0, 0, x))
    spans = [(a, b, length) for a, b, length in reversed(runs) if length > 0]
    nothing = NO_INTS
    return (
        np.concatenate([nothing, *(np.arange(a, a + length) for a, _, length in spans)]),
        np.concatenate([nothing, *(np.arange(b, b + length) for _, b, length in spans)]),
    )
