"""Which ranks are missing, were truncated, hold other steps than the rest, or occur twice?"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from tracekit.profile import Profile
from tracekit.profile.names import job_of, rank_of
from tracekit.ranks.columns import RankColumns

_MOST = 1 << 20  # ranks: a trace that claims more is not believed
_LISTED = 8


def shortcomings(columns: Sequence[RankColumns]) -> dict[int, str]:
    """For each incomplete rank, what it lacks, as the rest of a sentence about the rank."""
    every = {step for each in columns for step in each.steps["step"].to_pylist()}
    said = {}
    for each in columns:
        steps = len(each.steps)
        parts = [
            f"its file was cut ({each.cut_short})" if each.cut_short is not None else "",
            f"it answers for {steps} of the {len(every)} steps" if steps < len(every) else "",
            "none of its communication was recorded" if not len(each.calls) else "",
        ]
        if any(parts):
            said[each.rank] = ", ".join(filter(None, parts))
    return said


def missing(columns: Sequence[RankColumns]) -> list[int]:
    """The ranks of the job without a trace, if the traces say how many ranks there are."""
    world = max((each.world_size or 0 for each in columns), default=0)
    present = {each.rank for each in columns}
    return [rank for rank in range(world) if rank not in present] if world <= _MOST else []


def doubles(profiles: Sequence[Profile], columns: Sequence[RankColumns]) -> Iterator[tuple[str, int]]:
    """Other traces that claim to be a rank of the job, too: the name of each, and the rank."""
    job, ranks = job_of(Path(columns[0].trace), columns[0].world_size), {each.rank for each in columns}
    traces = {each.trace for each in columns}
    for profile in profiles:
        rank, world = rank_of(profile)
        path = profile.trace.path
        if rank is not None and rank in ranks and str(path) not in traces and job_of(path, world) == job:
            yield profile.name, rank


def listed(ranks: Sequence[int]) -> str:
    """`rank 3`, `ranks 4 to 7`, `ranks 1, 3, 5`; only the first few if there are many that are not consecutive."""
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    if list(ranks) == [*range(ranks[0], ranks[-1] + 1)]:
        return f"ranks {ranks[0]} to {ranks[-1]}"
    few = ", ".join(map(str, ranks[:_LISTED]))
    return f"ranks {few}{f' and {len(ranks) - _LISTED:,} more' if len(ranks) > _LISTED else ''}"
