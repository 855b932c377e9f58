"""What do names of files say: what a variant is called, and which traces are the ranks of one job?"""

import re
from collections.abc import Sequence
from itertools import count
from pathlib import Path

from msgspec.structs import replace

from tracekit.base import disclosure
from tracekit.profile.profile import Profile
from tracekit.profile.subject import Member
from tracekit.trace.reading.source import STDIN

_ENDINGS = (".tmp", ".gz", ".zst", ".json", ".trace", ".pt", ".sqlite", ".nsys-rep")
_NUMBER = re.compile(r"\d+")
_IN_NAME = re.compile(r"(?:rank|worker)[_-]?(\d+)", re.IGNORECASE)


def stem(path: Path) -> str:
    """The name of a file without the suffixes that say what kind of file it is."""
    if str(path) == STDIN:
        return "stdin"
    name = path.name
    for ending in _ENDINGS:
        name = name.removesuffix(ending)
    return _as_text(name or path.name)


def shown_name(path: Path) -> str:
    """What a trace is called: by its file, unless that is confidential."""
    return stem(path) if disclosure.current() is None else disclosure.shown_path(path)


def path_as_text(path: str | Path) -> str:
    """A path as text that every table can hold: bytes that are not text are escaped."""
    return _as_text(disclosure.shown_path(Path(path)))


def _as_text(text: str) -> str:
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def distinct(names: Sequence[str]) -> list[str]:
    """The names, with a number appended to those that occur already."""
    unique: list[str] = []
    for name in names:
        numbered = (f"{name} ({number})" for number in count(2))
        unique.append(name if name not in unique else next(n for n in numbered if n not in names and n not in unique))
    return unique


def run_names(paths: Sequence[Path], recipes: Sequence[str]) -> list[str]:
    """What runs are called: by their recipes, their files or their folders, whichever first distinguishes them."""
    ways = [list(recipes), [shown_name(path) for path in paths]]
    if disclosure.current() is None:
        ways.append([path.resolve().parent.name for path in paths])
    labels = next((way for way in ways if len(set(way)) == len(way)), list(recipes))
    return distinct(labels)


def together(members: Sequence[Member]) -> list[Member]:
    """The members, with the bare traces of one job as one profile: a capture for each rank.

    The lowest rank is first, unless its trace cannot answer: all figures except those about ranks are of the
    first.

    Traces are of one job if they are in one folder, have names that differ only in numbers, and name different ranks:
    in `distributedInfo` with equal world sizes, or else in their names.
    """
    jobs: dict[tuple[Path, str, object], dict[int, Profile]] = {}
    alone: list[Member] = []
    for member in members:
        rank, world = rank_of(member) if isinstance(member, Profile) else (None, None)
        # A file that merges ranks already has all of them.
        if not isinstance(member, Profile) or rank is None or member.run is not None or len(member.captures) > 1:
            alone.append(member)
            continue
        job = jobs.setdefault(job_of(member.trace.path, world), {})
        if rank in job:  # of another job, or another recording of the rank
            alone.append(member)
        job.setdefault(rank, member)
    by_id: dict[int, Member] = {}
    for job in jobs.values():
        order = sorted(job, key=lambda rank: (not job[rank].attribution.answered_view.known.any(), rank))
        joined = first = job[order[0]]
        if len(job) > 1:
            captures = [replace(capture, rank=rank) for rank in order for capture in job[rank].captures]
            joined = replace(first, name=job_name(first.trace.path), captures=tuple(captures))
        by_id |= {id(profile): joined for profile in job.values()}
    by_id |= {id(member): member for member in alone}
    return [*{id(result): result for result in (by_id[id(member)] for member in members)}.values()]


def job_of(path: Path, world: int | None) -> tuple[Path, str, int | None]:
    """What the traces of one job have in common: folder, name apart from its numbers, world size."""
    return path.parent, _NUMBER.sub("#", stem(path)), world


def job_name(path: Path) -> str:
    """The name of a job, given the trace of one of its ranks."""
    if disclosure.current() is not None:
        return disclosure.shown_path(path)
    return _IN_NAME.sub("", stem(path)).strip("_-. ") or path_as_text(path.resolve().parent.name)


def rank_of(profile: Profile) -> tuple[int | None, int | None]:
    """The rank and the world size that the trace states; the rank that its name states; or nothing."""
    distributed = profile.trace.meta.get("distributedInfo")
    if isinstance(distributed, dict) and isinstance(rank := distributed.get("rank"), int) and rank >= 0:
        world = distributed.get("world_size")
        return rank, world if isinstance(world, int) else None
    match = _IN_NAME.search(profile.trace.path.name)
    return (int(match[1]) if match else None), None
