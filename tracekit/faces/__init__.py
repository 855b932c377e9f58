"""The faces: one file per output format. A face lays out and escapes; it computes nothing, and names no section.

A face is a module here, named after its format, with a function under `@face(...)`; `@folder_face(...)` where it writes
several files, `@variant_face(...)` where it writes one for each variant. `--format` offers it. A face
that lives elsewhere registers itself in the same way when it is imported. `shared` has what faces have in common;
`shared.output_files` writes what they make to its destination.
"""

import pkgutil
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO, TypeVar

from tracekit.base.registry import Registry, import_plug_in, plug_ins

if TYPE_CHECKING:
    from tracekit.profile import Profile
    from tracekit.report import Report

FIRST = "text"  # the default
WriteVariant = Callable[["Report", "Profile", Path], None]


class Options(NamedTuple):
    """How much of the report to draw, and for which destination."""

    rows: int | None = None  # of each table; None: it depends on the worth of the section
    full: bool = False  # everything, all rows included
    stream: TextIO | None = None  # the destination, for a face that depends on its width and colours
    step: int | None = None  # the N of the ProfilerStep to draw, for a face that draws events; None: all of them


DEFAULTS = Options()


Draw = Callable[["Report", Options], str | bytes]
Fill = Callable[["Report", Path, Options], None]
_Draw = TypeVar("_Draw", bound=Draw)
_Fill = TypeVar("_Fill", bound=Fill)
_Function = TypeVar("_Function", bound=Callable[..., Any])


class Face(NamedTuple):
    """A format, made by one of three functions: `draw` returns text or bytes, `fill` makes the files of a folder,
    `write_variant` writes a file for one variant."""

    name: str
    draw: Draw | None = None
    fill: Fill | None = None
    write_variant: WriteVariant | None = None
    suffix: str = ""  # of the files of variants
    on_terminal: bool = True  # whether people can read it there


_registered = Registry[Face]("faces")


def _registering(name: str, as_face: Callable[[Any], Face]) -> Callable[[_Function], _Function]:
    def register(function: _Function) -> _Function:
        _registered.register(name, as_face(function), function)
        return function

    return register


def face(name: str, on_terminal: bool = True) -> Callable[[_Draw], _Draw]:
    """Register the function that turns a report into text, or into the bytes of one file, of that format.

    A format that nobody can read `on_terminal` is written only to files and pipes.
    """
    return _registering(name, lambda draw: Face(name, draw=draw, on_terminal=on_terminal))


def folder_face(name: str) -> Callable[[_Fill], _Fill]:
    """Register the function that writes a report as files into an empty folder."""
    return _registering(name, lambda fill: Face(name, fill=fill))


def variant_face(name: str, suffix: str) -> Callable[[WriteVariant], WriteVariant]:
    """Register the function that writes one variant of a report as a file."""
    return _registering(name, lambda write_variant: Face(name, write_variant=write_variant, suffix=suffix))


def unregister(name: str) -> None:
    """Remove the face of that name."""
    _registered.unregister(name)


def names() -> list[str]:
    """The names of all formats, without importing them."""
    module_names = {module.name for module in pkgutil.iter_modules(__path__) if not module.ispkg}
    added = plug_ins("tracekit.faces").keys()
    return sorted(module_names | _registered.keys() | added, key=lambda name: (name != FIRST, name))


def find(name: str) -> Face:
    """The face of that format. Raises ValueError where the module of that name registers another, and PlugInError
    where it is another package's and cannot be imported."""
    entry_point = plug_ins("tracekit.faces").get(name)
    if name not in _registered and entry_point is not None:
        import_plug_in(entry_point)
    elif name not in _registered:
        import_module(f"{__name__}.{name}")
    if name not in _registered:
        module = entry_point.value if entry_point is not None else f"tracekit/faces/{name}.py"
        raise ValueError(f"{module} registers no format {name!r}: give both the same name")
    return _registered[name]
