"""Which calls of several ranks are one collective, how large is it, and do the ranks hold the same steps?

Calls are one if they belong to the same process group and kind, and have the same position in the same step. In most
kinds, all ranks contribute equally, so the size has to agree, too. In a trace without shapes, as on a CPU, the
recording with shapes has the sizes; they are inferred only if every recorded step has equally many of them, with the
same sizes. Ranks may be missing, be truncated, hold other steps than the rest, or occur twice.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from tracekit.base.intervals import Bools, Ints, distinct
from tracekit.errors import TracekitError
from tracekit.profile import Profile
from tracekit.profile.names import job_of, rank_of
from tracekit.ranks.columns import RankColumns, read_rank
from tracekit.trace.collectives import SAME_SIZE
from tracekit.trace.schema import values

_MAX_RANKS = 1 << 20  # ranks: a trace that claims more is not believed
_LISTED = 8
_Key = tuple[str, str | None]  # kind and group


class Matched(Struct, frozen=True):
    """Calls that are parts of collectives, grouped by collective, the earliest collective first.

    `rank` is an index into the given ranks; `first` has the row at which each collective begins, and a final entry.
    """

    calls: pa.Table
    rank: Ints
    first: Ints
    unmatched: Ints  # by rank: calls that some ranks that should have them lack

    def __len__(self) -> int:
        return len(self.first) - 1

    def column(self, name: str) -> Ints:
        """A column of whole numbers."""
        return values(self.calls[name])


def match(columns: Sequence[RankColumns], steps: frozenset[int]) -> Matched:
    """The collectives in these steps that all available ranks of their group took part in.

    A rank without a step in common with any other counts as unavailable: its file may have been cut earlier.
    """
    calls = pa.concat_tables([rank.calls for rank in columns]).combine_chunks()
    rank, step = np.repeat(np.arange(len(columns)), [len(rank.calls) for rank in columns]), values(calls["step"])
    is_in_steps = np.isin(step, list(steps))
    # A number for each call; calls of different ranks have the same one if they may be one collective.
    names = ("kind", "bytes", "step", "group", "seq", "nth")
    numbers: dict[tuple[Any, ...], int] = {}
    keys = (
        (kind, size if kind in SAME_SIZE else None, *other_keys)
        for kind, size, *other_keys in zip(*(calls[name].to_pylist() for name in names), strict=True)
    )
    collective = np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.int64)
    # The ranks that have calls in a step in which other ranks have some, too.
    pairs = np.unique(np.stack([rank[is_in_steps], step[is_in_steps]]), axis=1)
    _, index, ranks = np.unique(pairs[1], return_inverse=True, return_counts=True)
    taking_part = {columns[of_rank].rank for of_rank in distinct(pairs[0][ranks[index] > 1]).tolist()}
    # How many of them must have each call: those in its group. If its members are not known, these are the ranks with
    # calls of the group; if the group is not known, all ranks.
    groups = calls["group"].to_pylist()
    members: dict[str | None, set[int]] = {None: taking_part.copy()}
    for group, of_rank in zip(groups, rank.tolist(), strict=True):
        members.setdefault(group, set()).add(columns[of_rank].rank)
    for rank_columns in columns:
        members |= {group: set(ranks_of_group) for group, ranks_of_group in rank_columns.groups.items()}
    sizes = {group: len(ranks_of_group & taking_part) for group, ranks_of_group in members.items()}
    expected = np.array([sizes[group] for group in groups], np.int64)
    present = np.bincount(collective[is_in_steps], minlength=int(collective.max(initial=-1)) + 1)
    is_complete: Bools = is_in_steps & (present[collective] == expected) & (expected > 1)
    unmatched = np.bincount(rank[is_in_steps & ~is_complete], minlength=len(columns))
    rows = np.flatnonzero(is_complete)
    begin = np.full(len(present), np.iinfo(np.int64).max)
    np.minimum.at(begin, collective[rows], values(calls["start_ns"])[rows])
    rows = rows[np.lexsort((rank[rows], collective[rows], begin[collective[rows]]))]
    edges = np.flatnonzero(np.diff(collective[rows], prepend=-1, append=-1)) if len(rows) else np.zeros(1, np.int64)
    return Matched(calls.take(rows), rank[rows], edges, unmatched)


def shortcomings(columns: Sequence[RankColumns]) -> dict[int, str]:
    """For each incomplete rank, what it lacks, as the rest of a sentence about the rank."""
    all_steps = {step for rank_columns in columns for step in rank_columns.steps["step"].to_pylist()}
    sentences = {}
    for rank_columns in columns:
        steps = len(rank_columns.steps)
        parts = [
            f"its file was cut ({rank_columns.cut_short})" if rank_columns.cut_short is not None else "",
            f"it answers for {steps} of the {len(all_steps)} steps" if steps < len(all_steps) else "",
            "none of its communication was recorded" if not len(rank_columns.calls) else "",
        ]
        if any(parts):
            sentences[rank_columns.rank] = ", ".join(filter(None, parts))
    return sentences


def missing(columns: Sequence[RankColumns]) -> list[int]:
    """The ranks of the job without a trace, if the traces say how many ranks there are."""
    world = max((rank.world_size or 0 for rank in columns), default=0)
    present = {rank.rank for rank in columns}
    return [rank for rank in range(world) if rank not in present] if world <= _MAX_RANKS else []


def doubles(profiles: Sequence[Profile], columns: Sequence[RankColumns]) -> Iterator[tuple[str, int]]:
    """Other traces that claim to be a rank of the job, too: the name of each, and the rank."""
    job, ranks = job_of(Path(columns[0].trace), columns[0].world_size), {rank.rank for rank in columns}
    traces = {rank.trace for rank in columns}
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
    first_ranks = ", ".join(map(str, ranks[:_LISTED]))
    return f"ranks {first_ranks}{f' and {len(ranks) - _LISTED:,} more' if len(ranks) > _LISTED else ''}"


def with_sizes(columns: Sequence[RankColumns], profile: Profile) -> list[RankColumns]:
    """The same calls, with missing sizes taken from the recording with shapes, if the variant has one."""
    path = profile.detail_path
    if path is None or not any(_is_unknown(rank) for rank in columns):
        return [*columns]
    try:
        calls = read_rank(path, 0).calls
    except TracekitError:
        return [*columns]
    bytes_of, steps = calls["bytes"].to_pylist(), set(calls["step"].to_pylist())
    by_key: dict[_Key, list[list[int]]] = {}
    for (_, key), positions in _positions(calls).items():
        by_key.setdefault(key, []).append([bytes_of[position] for position in positions])
    # The sizes of the collectives that each recorded step has in equal number and size, in the order of a step.
    known_sizes = {
        key: of_steps[0]
        for key, of_steps in by_key.items()
        if len(of_steps) == len(steps) and None not in of_steps[0] and all(sizes == of_steps[0] for sizes in of_steps)
    }
    return [_filled(rank, known_sizes) if _is_unknown(rank) else rank for rank in columns]


def _is_unknown(columns: RankColumns) -> bool:
    """Whether the trace has no size for any collective whose size is the same on every rank."""
    kinds, sizes = (columns.calls[name].to_pylist() for name in ("kind", "bytes"))
    is_size_known = [size is not None for kind, size in zip(kinds, sizes, strict=True) if kind in SAME_SIZE]
    return bool(is_size_known) and not any(is_size_known)


def _filled(columns: RankColumns, sizes: dict[_Key, list[int]]) -> RankColumns:
    calls = columns.calls
    numbers_known: list[int | None] = [None] * len(calls)
    for (_, key), positions in _positions(calls).items():
        if len(positions) == len(sizes.get(key, ())):
            for position, size in zip(positions, sizes[key], strict=True):
                numbers_known[position] = size
    index = calls.schema.get_field_index("bytes")
    filled = calls.set_column(index, calls.schema.field(index), pa.array(numbers_known, pa.int64()))
    return replace(columns, calls=filled, sizes_inferred=any(size is not None for size in numbers_known))


def _positions(calls: pa.Table) -> dict[tuple[int, _Key], list[int]]:
    """The positions of the calls by step, kind and group; only of kinds whose size is the same on every rank."""
    positions: dict[tuple[int, _Key], list[int]] = {}
    lists: Iterable[list[object]] = (calls[name].to_pylist() for name in ("step", "kind", "group"))
    for position, (step, kind, group) in enumerate(zip(*lists, strict=True)):
        if kind in SAME_SIZE:
            positions.setdefault((step, (kind, group)), []).append(position)
    return positions
