"""How large are collectives in a trace without shapes, as on a CPU? The recording with shapes has their sizes.

Two collectives count as the same if they agree in kind, group and position among these in a step. Their size is then
inferred, but only if every recorded step has equally many of them, with the same sizes.
"""

from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa
from msgspec.structs import replace

from tracekit.errors import TracekitError
from tracekit.profile import Profile
from tracekit.ranks.columns import RankColumns, read_rank
from tracekit.trace.collectives import SAME_SIZE

_Key = tuple[str, str | None]  # kind and group
_Sizes = Mapping[_Key, list[int]]  # in the order in which they come in a step


def with_sizes(columns: Sequence[RankColumns], profile: Profile) -> list[RankColumns]:
    """The same calls, with missing sizes taken from the recording with shapes, if the variant has one."""
    path = profile.detail_path
    if path is None or not any(_is_unknown(each) for each in columns):
        return [*columns]
    try:
        sizes = _sizes(read_rank(path, 0).calls)
    except TracekitError:
        return [*columns]
    return [_filled(each, sizes) if _is_unknown(each) else each for each in columns]


def _is_unknown(columns: RankColumns) -> bool:
    """Whether the trace has no size for any collective whose size is the same on every rank."""
    kinds, sizes = (columns.calls[name].to_pylist() for name in ("kind", "bytes"))
    known = [size is not None for kind, size in zip(kinds, sizes, strict=True) if kind in SAME_SIZE]
    return bool(known) and not any(known)


def _sizes(calls: pa.Table) -> _Sizes:
    """The sizes of the collectives that each recorded step has in equal number and size."""
    bytes_of, steps = calls["bytes"].to_pylist(), set(calls["step"].to_pylist())
    by_key: dict[_Key, list[list[int]]] = {}
    for (_, key), positions in _positions(calls).items():
        by_key.setdefault(key, []).append([bytes_of[position] for position in positions])
    return {
        key: each[0]
        for key, each in by_key.items()
        if len(each) == len(steps) and None not in each[0] and all(sizes == each[0] for sizes in each)
    }


def _filled(columns: RankColumns, sizes: _Sizes) -> RankColumns:
    calls = columns.calls
    known: list[int | None] = [None] * len(calls)
    for (_, key), positions in _positions(calls).items():
        if len(positions) == len(sizes.get(key, ())):
            for position, size in zip(positions, sizes[key], strict=True):
                known[position] = size
    index = calls.schema.get_field_index("bytes")
    filled = calls.set_column(index, calls.schema.field(index), pa.array(known, pa.int64()))
    return replace(columns, calls=filled, sizes_inferred=any(size is not None for size in known))


def _positions(calls: pa.Table) -> dict[tuple[int, _Key], list[int]]:
    """The positions of the calls by step, kind and group; only of kinds whose size is the same on every rank."""
    positions: dict[tuple[int, _Key], list[int]] = {}
    lists: Iterable[list[object]] = (calls[name].to_pylist() for name in ("step", "kind", "group"))
    for position, (step, kind, group) in enumerate(zip(*lists, strict=True)):
        if kind in SAME_SIZE:
            positions.setdefault((step, (kind, group)), []).append(position)
    return positions
