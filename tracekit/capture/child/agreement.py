"""Ranks that train together take equally many steps: the first rank decides for all what depends on clock or compiler.

A rank that stopped while the others continue would leave them waiting in a collective forever.
"""

import time
from pathlib import Path
from typing import TypeVar

import msgspec

from tracekit.base.atomic import put
from tracekit.capture.job import RESULT, Job

T = TypeVar("T", bool, int)
_LOOKED_EVERY_S = 0.001
_LONGEST_S = 60.0  # to wait for the others, once this rank has its result


class FirstRankEndedError(Exception):
    """The first rank ended, so there is no rank left to decide."""


class _Team:
    def __init__(self) -> None:
        self.rank, self.ranks, self.folder, self.decisions = 0, 1, Path(), 0


_team = _Team()


def join(job: Job) -> None:
    """Make this process one of the job's ranks."""
    _team.rank, _team.ranks, _team.folder, _team.decisions = job.rank, job.ranks, Path(job.meeting), 0


def agreed(value: T) -> T:
    """The first rank's value, on every rank; its own value in a process that is alone.

    All ranks call this in the same order, because they take the same steps.
    """
    if _team.ranks == 1:
        return value
    file = _team.folder / f"agreed-{_team.decisions}.json"
    _team.decisions += 1
    if _team.rank == 0:
        put(file, msgspec.json.encode(value))
        return value
    while not file.exists():
        if (_team.folder / RESULT).exists():
            raise FirstRankEndedError("rank 0 ended before this rank did")
        time.sleep(_LOOKED_EVERY_S)
    decided: T = msgspec.json.decode(file.read_bytes(), type=type(value))
    return decided


def leave(job: Job) -> None:
    """Wait until all ranks have finished: a rank that exits breaks collectives that others are still in."""
    if job.ranks == 1:
        return
    put(Path(job.meeting) / f"left-{job.rank}", b"")
    deadline_s = time.monotonic() + _LONGEST_S
    while time.monotonic() < deadline_s and len([*Path(job.meeting).glob("left-*")]) < job.ranks:
        time.sleep(_LOOKED_EVERY_S * 10)
