"""The process groups of a job, and which kind of parallelism each of them serves."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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


@dataclass(frozen=True)
class Group:
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


def groups_of(meta: Mapping[str, Any]) -> dict[str, Group]:
    """The groups that `distributedInfo` lists, by name."""
    distributed = meta.get("distributedInfo")
    listed = distributed.get("pg_config") if isinstance(distributed, dict) else None
    groups = {}
    for each in listed if isinstance(listed, list) else ():
        if isinstance(each, dict) and isinstance(name := each.get("pg_name"), str):
            ranks, size, called = each.get("ranks"), each.get("pg_size"), each.get("pg_desc")
            whole = isinstance(ranks, list) and ranks and all(isinstance(rank, int) for rank in ranks)
            groups[name] = Group(
                name,
                called if isinstance(called, str) else None,
                tuple(sorted(ranks)) if whole and isinstance(ranks, list) else None,
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
