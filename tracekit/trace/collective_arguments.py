"""What does a trace say about each of its collectives: the kind, the number of bytes, the process group?"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tracekit.intervals import Bools, Ints
from tracekit.trace import Trace
from tracekit.trace.beside import rows_of
from tracekit.trace.collective_kinds import kind_of
from tracekit.trace.enclosing import enclosing
from tracekit.trace.process_groups import Group, groups_of
from tracekit.trace.rows import Events

_RECORD = "record_param_comms"


@dataclass(frozen=True)
class CollectiveArguments:
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
    lines: list[dict[str, Any]] = trace.communications.to_pylist()
    described_rows = rows_of(trace, trace.communications)
    line_of = {row: line for row, line in zip(described_rows.tolist(), lines, strict=True) if row >= 0}
    around = _around(trace, rows, described_rows) if trace.device == "gpu" else [np.full(len(rows), -1)]
    entries = []
    for index, row in enumerate(rows.tolist()):
        known = (line_of.get(each) for each in (row, *(int(outer[index]) for outer in around)))
        line: Mapping[str, Any] = next((each for each in known if each is not None and _says(each)), {})
        entries.append(_arguments_of(line, trace.names[trace.name_codes[row]], groups, rank, world_size))
    return entries


def _says(line: Mapping[str, Any]) -> bool:
    return line["collective"] is not None or line["input_bytes"] is not None


def _around(trace: Trace, rows: Ints, described_rows: Ints) -> list[Ints]:
    """For each kernel the call that records a collective around its launch, and the span of the backend there."""
    says = np.zeros(len(trace.names), bool)
    says[trace.name_codes[described_rows[described_rows >= 0]]] = True
    records = np.array([name == _RECORD for name in trace.names], bool)
    launches = trace.links.launch(rows)

    def among(names: Bools) -> Ints:
        def asked(part: Events) -> Bools:
            chosen: Bools = part.roles.host & names[part.name_codes]
            return chosen

        return enclosing(trace, launches, asked)

    return [among(says & records), among(says & ~records)]


def _arguments_of(
    line: Mapping[str, Any], name: str, groups: Mapping[str, Group], rank: int, world_size: int | None
) -> CollectiveArguments:
    said = line.get("collective")
    kind = kind_of(said or line.get("name") or name)
    group = _group(line, groups) if said is not None else None
    if said is not None and kind == "send_recv":
        group = _pair(group, line, rank)
    ranks = group.count if group is not None and group.count else world_size
    return CollectiveArguments(kind, group, _size_bytes(line, kind, ranks), line.get("seq"), ranks)


def _group(line: Mapping[str, Any], groups: Mapping[str, Group]) -> Group | None:
    name = line["group"]
    if name is None:
        return None
    listed = groups.get(name)
    members = line["members"] or (listed.members if listed is not None else None)
    description = line["description"] or (listed.description if listed is not None else None)
    return Group(name, description, tuple(members) if members is not None else None, line["group_size"])


def _pair(group: Group | None, line: Mapping[str, Any], rank: int) -> Group | None:
    """For data sent from one rank to another, these two ranks."""
    source = line["source"] if line["source"] is not None else rank
    destination = line["destination"] if line["destination"] is not None else rank
    if group is None or source == destination:
        return None
    return Group(f"{group.name}: {source} → {destination}", group.description, (source, destination), 2)


def _size_bytes(line: Mapping[str, Any], kind: str, ranks: int | None) -> int | None:
    element, inside, outside = (line.get(key) for key in ("element_bytes", "in_elements", "out_elements"))
    if element is None or (inside is None and outside is None):
        given = line.get("input_bytes")
        if kind not in ("all_gather", "gather") or given is None:
            return given
        return given * ranks if ranks else None
    match kind:
        case "barrier":
            elements = 0
        case "gather":
            elements = (inside or 0) * (ranks or 1)
        case "scatter":
            elements = (outside or 0) * (ranks or 1)
        case _:
            elements = max(inside or 0, outside or 0)
    return int(element * elements)
