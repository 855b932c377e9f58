"""Which traces are the ranks of one job?"""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tracekit.profile.names import spelled, stem
from tracekit.profile.profile import Profile
from tracekit.profile.subject import Member

_NUMBER = re.compile(r"\d+")
_IN_NAME = re.compile(r"(?:rank|worker)[_-]?(\d+)", re.IGNORECASE)


def together(members: Sequence[Member]) -> list[Member]:
    """The members, with the bare traces of one job as one profile: a capture for each rank, the lowest first.

    Traces are of one job where they lie in one folder, have names that differ in numbers only, and say different ranks:
    in `distributedInfo` with equal world sizes, or else in their names.
    """
    jobs: dict[tuple[Path, str, object], dict[int, Profile]] = {}
    alone: list[Member] = []
    for member in members:
        rank, world = _rank_of(member) if isinstance(member, Profile) and member.run is None else (None, None)
        if rank is None or not isinstance(member, Profile):
            alone.append(member)
            continue
        path = member.trace.path
        job = jobs.setdefault((path.parent, _NUMBER.sub("#", stem(path)), world), {})
        if rank in job:  # of another job, or another recording of the rank
            alone.append(member)
        job.setdefault(rank, member)
    whole: dict[int, Member] = {key: made for job in jobs.values() for key, made in _joined(job)}
    whole |= {id(member): member for member in alone}
    return [*{id(made): made for made in (whole[id(member)] for member in members)}.values()]


def _rank_of(profile: Profile) -> tuple[int | None, int | None]:
    """The rank and the world size that the trace states; the rank that its name states; or nothing."""
    told = profile.trace.meta.get("distributedInfo")
    if isinstance(told, dict) and isinstance(rank := told.get("rank"), int) and rank >= 0:
        world = told.get("world_size")
        return rank, world if isinstance(world, int) else None
    named = _IN_NAME.search(profile.trace.path.name)
    return (int(named[1]) if named else None), None


def _joined(job: dict[int, Profile]) -> list[tuple[int, Profile]]:
    """For the id of each rank's profile the profile of all ranks; a rank that is alone stays as it is."""
    first = job[min(job)]
    if len(job) == 1:
        return [(id(first), first)]
    name = _IN_NAME.sub("", first.name).strip("_-. ") or spelled(first.trace.path.resolve().parent.name)
    captures = [replace(capture, rank=rank) for rank in sorted(job) for capture in job[rank].captures]
    made = replace(first, name=name, captures=tuple(captures))
    return [(id(profile), made) for profile in job.values()]
