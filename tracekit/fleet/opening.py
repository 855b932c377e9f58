"""A subject whose ranks were all read elsewhere, with one rank of each job opened here."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from tracekit.errors import RanksLostError
from tracekit.fleet.fetching import fetched, named_after
from tracekit.fleet.one_rank import Lost
from tracekit.fleet.readers import Readers
from tracekit.fleet.reading import RankWatch, read_all
from tracekit.profile import Member, Profile, Subject, Untraced
from tracekit.profile.names import distinct, stem
from tracekit.profile.ranks import job_name, job_of
from tracekit.ranks import RankColumns

Open = Callable[[list[Path]], Subject]


def open_ranks(
    paths: Sequence[Path],
    readers: Readers,
    open_here: Open,
    *,
    infer_steps: bool = True,
    watch: RankWatch = lambda done, of: None,
) -> Subject:
    """Read every trace by the readers; open the lowest rank of each job by `open_here`, for all other figures.

    A rank that cannot be read, or whose reader dies, becomes a member without a trace. Raises RanksLostError if no rank
    can be read, and whatever `open_here` raises.
    """
    read = read_all(readers.traces(paths), readers, infer_steps=infer_steps, watch=watch)
    lost = [each for each in read.values() if isinstance(each, Lost)]
    jobs = _jobs([each for each in read.values() if isinstance(each, RankColumns)])
    if not jobs:
        raise RanksLostError(len(lost), lost[0].why)
    opening = [_opening(job) for job in jobs]
    first = [Path(each.trace) for each in opening]
    names = distinct([job_name(path) if len(job) > 1 else stem(path) for path, job in zip(first, jobs, strict=True)])
    members: list[Member] = [
        _opened(path, readers, open_here, name, each.rank if len(job) > 1 else None)
        for path, name, each, job in zip(first, names, opening, jobs, strict=True)
    ]
    members += [Untraced(stem(each.path), "error", each.why) for each in lost]
    columns = {name: job for name, job in zip(names, jobs, strict=True) if len(job) > 1}
    return Subject(members, ranks=columns)


def _opening(job: list[RankColumns]) -> RankColumns:
    """The rank whose trace is opened: the lowest that can be answered."""
    return next((each for each in job if len(each.steps)), job[0])


def _opened(path: Path, readers: Readers, open_here: Open, name: str, rank: int | None) -> Profile:
    """Open the trace by itself: traces that are opened together would be taken for ranks of one job."""
    with fetched(path, readers) as file:
        (profile,) = open_here([file]).profiles
    profile = replace(named_after(profile, path), name=name)
    if rank is None:  # it may be a file that merges ranks
        return profile
    return replace(profile, captures=tuple(replace(capture, rank=rank) for capture in profile.captures))


def _jobs(columns: list[RankColumns]) -> list[list[RankColumns]]:
    """The ranks of each job, the lowest first; the second of two equal ranks is a separate job."""
    jobs: dict[object, dict[int, RankColumns]] = {}
    for each in columns:
        key: object = job_of(Path(each.trace), each.world_size)
        if each.rank in jobs.get(key, {}):
            key = each.trace
        jobs.setdefault(key, {})[each.rank] = each
    return [[job[rank] for rank in sorted(job)] for job in jobs.values()]
