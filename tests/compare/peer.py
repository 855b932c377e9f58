"""The interface behind which each tool has one file in `peers`.

Such a file is imported here for its `PEER`, and run as a module in the tool's own environment, which has neither
tracekit nor its dependencies: this module therefore needs nothing but Python.
"""

import json
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path


@dataclass
class Breakdown:
    """How a tool divides the time of one file; every time is in ns."""

    parts: dict[str, float]  # what it divides the time into
    busy: list[str]  # the parts in which the GPU works
    causes: dict[str, float]  # what it blames the GPU's idle time on; without a GPU, the time
    windows: list[list[int]]  # which time it divides, on the file's clock
    settings: str = ""  # where it was asked in several ways


@dataclass(frozen=True)
class Peer:
    """A tool."""

    id: str
    name: str
    package: str  # whose version is stated
    requires: tuple[str, ...] = ()  # what pip installs in its environment; none: it runs where tracekit does
    absent: str = ""  # why it may be impossible to have it
    probe: str = ""  # Python that fails in its environment if a part of it is missing that pip does not install
    command: Callable[[Path, list[Path], Path], list[str]] | None = field(default=None)
    """What its user types for the first table: interpreter, files, folder for output. None: its own file shows it."""


def module(peer: Peer) -> str:
    """The module that asks it."""
    return f"tests.compare.peers.{peer.id}"


def main(
    breakdowns: Callable[[Path], list[Breakdown]], first_table: Callable[[list[Path]], None] | None = None
) -> None:
    """Ask about some files: `python -m … table FILE …` shows the first table, `… ANSWERS FILE …` writes the answers."""
    target, *files = map(Path, sys.argv[1:])
    if str(target) == "table" and first_table is not None:
        first_table(files)
    else:
        target.write_text(json.dumps([[asdict(each) for each in breakdowns(file)] for file in files]), encoding="utf-8")
