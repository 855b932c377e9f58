"""The report, drawn: a file per format. A face lays out and escapes; it works nothing out, and names no section.

A face is a module here, named after its format, with a function under `@face(...)`, or `@folder_face(...)` where it
writes several files; `--format` offers it. One that lives elsewhere registers itself the same way when it is imported.
What faces share stands in `shared`.
"""

import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from tracekit.report import Report

FIRST = "text"  # the one that nobody has to ask for


@dataclass(frozen=True)
class Options:
    """How much of the report to draw, and for where."""

    rows: int | None = None  # of each table; None leaves it to what a section is worth
    full: bool = False  # everything, all rows included
    stream: TextIO | None = None  # where it will go, for a face that asks how wide that is, and whether it has colours


Draw = Callable[["Report", Options], str]
Write = Callable[["Report", Path, Options], list[Path]]


@dataclass(frozen=True)
class Face:
    """A format: `draw` makes one text of a report, or `write` files in a folder."""

    name: str
    draw: Draw | None = None
    write: Write | None = None


_registered: dict[str, Face] = {}


def face(name: str) -> Callable[[Draw], Draw]:
    """Register the function that makes a report into one text of that format."""

    def register(draw: Draw) -> Draw:
        _registered[name] = Face(name, draw=draw)
        return draw

    return register


def folder_face(name: str) -> Callable[[Write], Write]:
    """Register the function that writes a report as files into a folder, and returns their paths."""

    def register(write: Write) -> Write:
        _registered[name] = Face(name, write=write)
        return write

    return register


def unregister(name: str) -> None:
    """Forget a face again."""
    _registered.pop(name, None)


def names() -> list[str]:
    """The formats there are; nothing is imported for it."""
    here = {module.name for module in pkgutil.iter_modules(__path__) if not module.ispkg}
    return sorted(here | _registered.keys(), key=lambda name: (name != FIRST, name))


def find(name: str) -> Face:
    """The face of that format."""
    if name not in _registered:
        import_module(f"{__name__}.{name}")
    return _registered[name]
