"""A subject whose ranks were all read elsewhere, with one rank of each job opened here.

Traces are read a few at a time: one that is damaged, or kills its reader, costs only itself. Where only a worker
has the trace that is opened here, it is fetched from there.
"""

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from contextlib import contextmanager
from pathlib import Path

from msgspec.structs import replace

from tracekit.base.workspace import workspace_anywhere
from tracekit.errors.reading import RanksLostError, UnreadableFileError
from tracekit.profile import Capture, Member, Profile, Subject, Untraced
from tracekit.profile.names import distinct, job_name, job_of, stem
from tracekit.ranks import RankColumns
from tracekit.ranks.readers import Lost, Read, Readers
from tracekit.trace.reading.source import is_address
from tracekit.trace.storing import cache

Open = Callable[[list[Path]], Subject]

RankWatch = Callable[[int, int], None]  # called with the number of finished traces, and of all traces
_SECONDS = 2.0  # between two checks whether any reader is left
_DIED = "the process that read it died twice, perhaps because memory ran out"


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
    lost = [reading for reading in read.values() if isinstance(reading, Lost)]
    jobs = _jobs([reading for reading in read.values() if isinstance(reading, RankColumns)])
    if not jobs:
        raise RanksLostError(len(lost), lost[0].why)
    # The lowest rank of each job that can be answered.
    opening = [next((rank for rank in job if len(rank.steps)), job[0]) for job in jobs]
    first = [Path(rank.trace) for rank in opening]
    names = distinct([job_name(path) if len(job) > 1 else stem(path) for path, job in zip(first, jobs, strict=True)])
    members: list[Member] = [
        _opened(path, readers, open_here, name, rank.rank if len(job) > 1 else None)
        for path, name, rank, job in zip(first, names, opening, jobs, strict=True)
    ]
    members += [Untraced(stem(failure.path), "error", failure.why) for failure in lost]
    columns = {name: job for name, job in zip(names, jobs, strict=True) if len(job) > 1}
    return Subject(members, ranks=columns)


def _opened(path: Path, readers: Readers, open_here: Open, name: str, rank: int | None) -> Profile:
    """Open the trace by itself: traces that are opened together would be taken for ranks of one job."""
    with fetched(path, readers) as file:
        (profile,) = open_here([file]).profiles
    captures = tuple(_named_after(capture, path) for capture in profile.captures)
    if rank is not None:  # else it may be a file that merges ranks
        captures = tuple(replace(capture, rank=rank) for capture in captures)
    return replace(profile, name=name, captures=captures)


def _jobs(columns: list[RankColumns]) -> list[list[RankColumns]]:
    """The ranks of each job, the lowest first; the second of two equal ranks is a separate job."""
    jobs: dict[object, dict[int, RankColumns]] = {}
    for profile in columns:
        key: object = job_of(Path(profile.trace), profile.world_size)
        if profile.rank in jobs.get(key, {}):
            key = profile.trace
        jobs.setdefault(key, {})[profile.rank] = profile
    return [[job[rank] for rank in sorted(job)] for job in jobs.values()]


@contextmanager
def fetched(path: Path, readers: Readers) -> Iterator[Path]:
    """The path if its file is here, else that of a copy with the same name. Raises TracekitError."""
    if _is_here(path):
        yield path
        return
    with workspace_anywhere(cache.home() / "work") as folder:
        if folder is None:
            raise UnreadableFileError(path, "there is nowhere to store it while it is read")
        copy = folder / path.name
        try:
            with copy.open("wb") as out:
                for piece in readers.pieces(path):
                    out.write(piece)
        except OSError as error:
            raise UnreadableFileError(path, error.strerror or str(error)) from None
        yield copy


def _is_here(path: Path) -> bool:
    return is_address(path) or os.path.exists(path)


def _named_after(capture: Capture, path: Path) -> Capture:
    """A capture that may have been read from a copy, with the path of the original."""
    if capture.attribution is None or capture.path == path:
        return capture
    trace = replace(capture.attribution.trace, path=path)
    return replace(capture, path=path, attribution=replace(capture.attribution, trace=trace))


def read_all(
    paths: Sequence[Path], readers: Readers, *, infer_steps: bool = True, watch: RankWatch = lambda done, of: None
) -> dict[Path, Read]:
    """For each path, its columns, or why there are none. If a reader dies, the traces it may have died of are read
    again, each alone."""
    reading_of: dict[Path, Read] = {}

    def keep(path: Path, read: Read) -> None:
        reading_of[path] = read
        watch(len(reading_of), len(paths))

    for path in _one_pass(paths, readers, readers.width, infer_steps, keep):
        for _ in _one_pass([path], readers, 1, infer_steps, keep):
            keep(path, Lost(path, _DIED))
    return {path: reading_of[path] for path in paths}


def _one_pass(
    paths: Sequence[Path], readers: Readers, width: int, infer_steps: bool, keep: Callable[[Path, Read], None]
) -> list[Path]:
    """Read the traces, that many at a time; returns those that were being read when a reader died."""
    waiting, running, suspects = deque(paths), dict[Future[Read], Path](), list[Path]()
    broken = False
    while waiting or running:
        while waiting and len(running) < width and not broken:
            path = waiting.popleft()
            try:
                running[readers.submit(path, infer_steps)] = path
            except BrokenExecutor:  # a reader died since, of a trace that is still being read
                broken = True
                waiting.appendleft(path)
        done, _ = wait(running, _SECONDS, FIRST_COMPLETED)
        if not done and (why := readers.why_idle()) is not None:
            for path in [*running.values(), *waiting]:
                keep(path, Lost(path, why))
            return suspects
        for future in done:
            path = running.pop(future)
            try:
                keep(path, future.result())
            except BrokenExecutor:
                broken = True
                suspects.append(path)
            except Exception as error:  # a cluster raises its own exceptions when workers die while reading a trace
                keep(path, Lost(path, f"reading it failed: {error or type(error).__name__}"))
        if broken and not running:
            readers.restart()
            broken = False
    return suspects
