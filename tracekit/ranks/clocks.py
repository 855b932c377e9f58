"""By how much does each rank's clock differ, judged by the collectives that ranks took part in together?"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tracekit.intervals import Bools, Ints
from tracekit.ranks.matching import Matched
from tracekit.trace.collective_kinds import ONE_SIDED

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Clock:
    """What to subtract from a rank's times, and how much the ends of single collectives still differ, ns.

    `error_ns` is None if no collective ties the rank to the majority, so that nothing aligns it with them.
    """

    offset_ns: int
    error_ns: int | None


def align(matched: Matched, ranks: int) -> list[Clock]:
    """A clock per rank.

    A collective ends on every rank at nearly the same moment. Between two ranks the median difference of its ends is
    the difference of their clocks. Pairs of ranks are aligned one after another, those that share the most collectives
    first, which also aligns ranks that never share one. An offset is relative to the median of all; its error is the
    median absolute difference that then remains between the ends on that rank and the median end. Collectives in which
    a rank may be done before the others count only if the rest does not tie all ranks together.
    """
    ends = _ends(matched, ranks)
    kinds = matched.calls["kind"].to_pylist()
    two_sided = np.array([kinds[first] not in ONE_SIDED for first in matched.first[:-1].tolist()], bool)
    chosen = ends[two_sided]
    offsets, tied = _tied(chosen)
    if not tied.all():
        chosen = ends
        offsets, tied = _tied(chosen)
    offsets -= round(float(np.median(offsets[tied])))
    errors = _errors(chosen - offsets)
    return [
        Clock(int(offset), round(error) if known else None)
        for offset, error, known in zip(offsets.tolist(), errors, tied.tolist(), strict=True)
    ]


def _ends(matched: Matched, ranks: int) -> Floats:
    """A row per collective, a column per rank: when it ended, relative to its end on the first rank; NaN if absent.

    (In unix ns, floating point could represent only every 256th value.)
    """
    ends = matched.column("end_ns")
    collective = np.repeat(np.arange(len(matched)), np.diff(matched.first))
    table = np.full((len(matched), ranks), np.nan)
    table[collective, matched.rank] = ends - ends[matched.first[:-1]][collective]
    return table


def _tied(ends: Floats) -> tuple[Ints, Bools]:
    """The offset of each rank, and which ranks are tied to the one with the most collectives.

    Ranks that nothing ties to it are aligned among themselves: ranks that share no collective are never compared.
    """
    here = ~np.isnan(ends)
    shared = here.T.astype(np.int64) @ here
    offsets, part = np.zeros(ends.shape[1], np.int64), np.full(ends.shape[1], -1)
    while (new_ones := part < 0).any():
        links = np.where(~new_ones[:, None] & new_ones[None, :], shared, 0)
        known, new = (int(each) for each in np.unravel_index(int(links.argmax()), links.shape))
        if links[known, new]:
            both = here[:, known] & here[:, new]
            offsets[new] = offsets[known] + round(float(np.median(ends[both, new] - ends[both, known])))
            part[new] = part[known]
        else:
            part[np.where(new_ones, here.sum(axis=0), -1).argmax()] = part.max() + 1
    return offsets, part == 0


def _errors(left: Floats) -> list[float]:
    """For each rank, the median distance of its ends from the median end; 0 if there are none."""
    rows = left[(~np.isnan(left)).sum(axis=1) > 1]
    away = np.abs(rows - np.nanmedian(rows, axis=1, keepdims=True)) if len(rows) else rows
    return [float(np.median(column[~np.isnan(column)])) if (~np.isnan(column)).any() else 0.0 for column in away.T]
