"""What an audit finds: rows, each a line of the user's that would block, crash or break a graph."""

from typing import Literal, TypeAlias, get_args

import msgspec

Kind: TypeAlias = Literal["sync", "copy", "mixed", "break"]
KINDS: tuple[Kind, ...] = get_args(Kind)


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the user's, and what it does to the device there."""

    kind: Kind
    operator: str  # as the profiler names it
    file: str
    line: int
    function: str
    per_step: float  # 0: seen only outside of the steps
    source: str = ""  # the line itself
    via: str | None = None  # where in a library its call had got to
    why: str = ""


class Audit(msgspec.Struct, frozen=True, kw_only=True):
    """All rows, over that many steps."""

    steps: int = 0
    rows: list[Row] = []
    losses: list[float] = []  # of every step of a recipe, the first one, too
    notes: list[str] = []  # what this run leaves open
    failure: str | None = None  # it came to its end before
