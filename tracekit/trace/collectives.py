"""What does a trace say about each of its collectives: which one it is, how many bytes it moves, in which process
group, and which kind of parallelism that group serves?
"""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec import Struct

from tracekit.base.intervals import Bools, Ints
from tracekit.trace import Trace
from tracekit.trace.rows import enclosing
from tracekit.trace.schema import values

_KINDS = (
    ("all_reduce", re.compile(r"all_?reduce", re.IGNORECASE)),
    ("reduce_scatter", re.compile(r"reduce_?scatter", re.IGNORECASE)),
    ("all_gather", re.compile(r"all_?gather", re.IGNORECASE)),
    ("all_to_all", re.compile(r"all_?to_?all|dispatch|combine", re.IGNORECASE)),
    ("send_recv", re.compile(r"send|recv", re.IGNORECASE)),
    ("broadcast", re.compile(r"broadcast", re.IGNORECASE)),
    ("reduce", re.compile(r"reduce", re.IGNORECASE)),
    ("barrier", re.compile(r"barrier", re.IGNORECASE)),
    ("gather", re.compile(r"gather", re.IGNORECASE)),
    ("scatter", re.compile(r"scatter", re.IGNORECASE)),
)
SAME_SIZE = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce")  # on every rank
ONE_SIDED = ("broadcast", "reduce", "gather", "scatter", "send_recv")  # some rank may be done before the others
_RECORD = "record_param_comms"
# The names that frameworks give their groups: `mesh_tp` (DeviceMesh), `TENSOR_MODEL_PARALLEL_GROUP` (Megatron), and so
# on. The first pattern that matches decides: `TENSOR_AND_DATA_PARALLEL_GROUP` counts as tensor parallel.
_ROLES = (
    ("pipeline parallel", re.compile(r"pipeline|(?:^|[_\W])pp(?:$|[_\W])", re.IGNORECASE)),
    ("tensor parallel", re.compile(r"tensor|(?:^|[_\W])tp(?:$|[_\W])", re.IGNORECASE)),
    ("expert parallel", re.compile(r"expert|(?:^|[_\W])ep(?:$|[_\W])", re.IGNORECASE)),
    ("data parallel", re.compile(r"data|fsdp|shard|replicate|(?:^|[_\W])d?dp(?:$|[_\W])", re.IGNORECASE)),
    ("context parallel", re.compile(r"context|sequence|(?:^|[_\W])[cs]p(?:$|[_\W])", re.IGNORECASE)),
)
_SAYS_NOTHING = ("undefined", "")


def kind_of(name: str) -> str:
    """The collective that a name indicates; `other` if it indicates none."""
    return next((kind for kind, pattern in _KINDS if pattern.search(name)), "other")


class Group(Struct, frozen=True):
    """A process group as a trace describes it; None for what the trace does not say."""

    name: str
    description: str | None
    members: tuple[int, ...] | None
    size: int | None

    @property
    def label(self) -> str:
        """`mesh_tp #3`: the program's description, and the name, which distinguishes groups with equal descriptions."""
        called = self.description if self.description not in (None, *_SAYS_NOTHING) else ""
        return f"{called} #{self.name}".strip()

    @property
    def count(self) -> int | None:
        """How many ranks it has."""
        return self.size if self.size else len(self.members) if self.members else None


class CollectiveArguments(Struct, frozen=True):
    """The arguments of one collective; what is not recorded is None."""

    kind: str
    group: Group | None
    size_bytes: int | None  # as nccl-tests counts it: for gathering and scattering, the whole buffer
    seq: int | None
    ranks: int | None  # how many take part


def collective_arguments(trace: Trace, rows: Ints, rank: int, world_size: int | None) -> list[CollectiveArguments]:
    """For each communication kernel, or span of a backend, what is recorded about it: in its own arguments, in those of
    the call that launched it, or only in its name."""
    groups = groups_of(trace.meta)
    described_rows = rows_of(trace, trace.communications)
    lines = zip(described_rows.tolist(), trace.communications.to_pylist(), strict=True)
    line_of: dict[int, Mapping[str, Any]] = {row: line for row, line in lines if row >= 0}
    enclosing_rows: list[Ints] = []
    if trace.device == "gpu":  # around the launch of each kernel: the call that records it, and the backend's span
        says = np.zeros(len(trace.names), bool)
        says[trace.name_codes[described_rows[described_rows >= 0]]] = True
        records = np.array([name == _RECORD for name in trace.names], bool)
        launches = trace.links.launch(rows)

        def around_launches(names: Bools) -> Ints:
            return enclosing(trace, launches, lambda part: part.roles.host & names[part.name_codes])

        enclosing_rows = [around_launches(says & records), around_launches(says & ~records)]
    entries = []
    for index, row in enumerate(rows.tolist()):
        events = (row, *(int(outer[index]) for outer in enclosing_rows))
        recorded = (line_of[event] for event in events if event in line_of)
        telling = (line for line in recorded if (line["collective"], line["input_bytes"]) != (None, None))
        line: Mapping[str, Any] = next(telling, {})
        collective = line.get("collective")
        kind = kind_of(collective or line.get("name") or trace.name(row))
        group = _group(line, groups, kind, rank) if collective is not None else None
        ranks = group.count if group is not None and group.count else world_size
        entries.append(CollectiveArguments(kind, group, _size_bytes(line, kind, ranks), line.get("seq"), ranks))
    return entries


def _group(line: Mapping[str, Any], groups: Mapping[str, Group], kind: str, rank: int) -> Group | None:
    """The group of a collective; for data sent from one rank to another, these two ranks."""
    name = line["group"]
    if name is None:
        return None
    listed = groups.get(name)
    description = line["description"] or (listed.description if listed is not None else None)
    if kind == "send_recv":
        source, destination = (rank if line[end] is None else line[end] for end in ("source", "destination"))
        if source == destination:
            return None
        return Group(f"{name}: {source} → {destination}", description, (source, destination), 2)
    members = line["members"] or (listed.members if listed is not None else None)
    return Group(name, description, tuple(members) if members is not None else None, line["group_size"])


def _size_bytes(line: Mapping[str, Any], kind: str, ranks: int | None) -> int | None:
    element, input_elements, output_elements = (
        line.get(key) for key in ("element_bytes", "in_elements", "out_elements")
    )
    if element is None or (input_elements is None and output_elements is None):
        input_bytes = line.get("input_bytes")
        if kind not in ("all_gather", "gather") or input_bytes is None:
            return input_bytes
        return input_bytes * ranks if ranks else None
    match kind:
        case "barrier":
            elements = 0
        case "gather":
            elements = (input_elements or 0) * (ranks or 1)
        case "scatter":
            elements = (output_elements or 0) * (ranks or 1)
        case _:
            elements = max(input_elements or 0, output_elements or 0)
    return int(element * elements)


def groups_of(meta: Mapping[str, Any]) -> dict[str, Group]:
    """The groups that `distributedInfo` lists, by name."""
    distributed = meta.get("distributedInfo")
    listed = distributed.get("pg_config") if isinstance(distributed, dict) else None
    groups = {}
    for config in listed if isinstance(listed, list) else ():
        if isinstance(config, dict) and isinstance(name := config.get("pg_name"), str):
            ranks, size, called = config.get("ranks"), config.get("pg_size"), config.get("pg_desc")
            has_all_ranks = isinstance(ranks, list) and ranks and all(isinstance(rank, int) for rank in ranks)
            groups[name] = Group(
                name,
                called if isinstance(called, str) else None,
                tuple(sorted(ranks)) if has_all_ranks and isinstance(ranks, list) else None,
                size if isinstance(size, int) else None,
            )
    return groups


def role_of(label: str | None, kinds: set[str]) -> tuple[str | None, bool]:
    """Which parallelism a group serves, and whether that is inferred from what it does, not from its name."""
    for role, pattern in _ROLES:
        if label is not None and pattern.search(label):
            return role, False
    if kinds and kinds <= {"send_recv"} and label is not None:
        return "pipeline parallel", True
    return None, False


def rows_of(trace: Trace, table: pa.Table) -> Ints:
    """The event that each row of a table describes, by its start, process, thread and name; −1 for none."""
    starts = values(table["ts_ns"])
    low, high = np.searchsorted(trace.ts_ns, starts, side="left"), np.searchsorted(trace.ts_ns, starts, side="right")
    described = zip(*(table[name].to_pylist() for name in ("pid", "tid", "name")), strict=True)
    rows = []
    for first, end, (pid, tid, name) in zip(low.tolist(), high.tolist(), described, strict=True):
        track = trace.track_rows.get((pid, tid), -1)
        matches = (row for row in range(first, end) if trace.track[row] == track and trace.name(row) == name)
        rows.append(next(matches, -1))
    return np.array(rows, np.int64)
