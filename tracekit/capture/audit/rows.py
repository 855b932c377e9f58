"""The rows of an audit: lines of the user's that would block, crash or break a graph."""

from typing import Literal, TypeAlias, get_args

import msgspec

Kind: TypeAlias = Literal["sync", "copy", "mixed", "break"]
KINDS: tuple[Kind, ...] = get_args(Kind)


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the user's, and what would happen there on a GPU."""

    kind: Kind
    operator: str  # as the profiler names it
    file: str
    line: int
    function: str
    per_step: float  # the mean over all counted steps; 0: seen only outside of them
    count: int = 0  # how often, in all counted steps
    in_steps: int = 0  # in how many of these it happened
    loading: bool = False  # it happened while a DataLoader made a batch in this process
    source: str = ""  # the line itself
    via: str | None = None  # the position in a library that its call had reached
    why: str = ""


class Audit(msgspec.Struct, frozen=True, kw_only=True):
    """All rows, and the number of steps that they cover."""

    steps: int = 0
    rows: list[Row] = []
    losses: list[float] = []  # of every step of a recipe, including the first one
    notes: list[str] = []  # what this run leaves open
    used: bool = True  # whether any tensor was put on the GPU
    failure: str | None = None  # why it ended early
