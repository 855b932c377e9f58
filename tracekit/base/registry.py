"""Things that register themselves when their module is imported: questions, rules, sections, faces; and the packages
that bring more of them.

An installed package names its modules as entry points: of the group `tracekit.questions`, `tracekit.findings` or
`tracekit.faces`. They are imported where the entries of tracekit itself are.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from tracekit.errors.asking import PlugInError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Entry = TypeVar("Entry")
Group = Literal["tracekit.questions", "tracekit.findings", "tracekit.faces"]


class Registry(Mapping[str, Entry]):
    """Entries by name, in the order in which they were registered."""

    def __init__(self, kind: str) -> None:
        self._kind = kind  # what the entries are, in the plural
        self._entries: dict[str, tuple[Entry, str]] = {}  # each with the name of the function it was made from

    def register(self, name: str, entry: Entry, function: Callable[..., Any]) -> None:
        """Add the entry that was made from a function. Raises ValueError if an entry of another function has its name.

        The same function may register again, and replaces its entry: a notebook's cell may be run twice, and a module
        may be reloaded.
        """
        origin = f"{function.__module__}.{getattr(function, '__qualname__', type(function).__qualname__)}"
        _, earlier = self._entries.get(name, (None, origin))
        if earlier != origin:
            raise ValueError(f"two {self._kind} are called {name!r}, {earlier} and {origin}: rename one of them")
        self._entries[name] = entry, origin

    def unregister(self, name: str) -> None:
        """Remove an entry, if there is one of that name."""
        self._entries.pop(name, None)

    def __getitem__(self, name: str) -> Entry:
        return self._entries[name][0]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


@lru_cache
def plug_ins(group: Group) -> Mapping[str, "EntryPoint"]:
    """What installed packages add to the group, by name, without importing it."""
    if not any(f"[{group}]" in declared for declared in entry_points_of_packages()):
        return {}
    from importlib.metadata import entry_points  # slow to import: only where there is something to find

    return {entry_point.name: entry_point for entry_point in entry_points(group=group)}


@lru_cache
def entry_points_of_packages() -> list[str]:
    """Texts of the files in which installed packages declare their entry points."""
    files = [path for folder in sys.path for path in Path(folder).glob("*-info/entry_points.txt")]
    return [path.read_text(encoding="utf-8", errors="replace") for path in files]


@lru_cache
def import_plug_ins(group: Group) -> None:
    """Import what installed packages add to the group, once. What cannot be imported is left out with a warning."""
    for entry_point in plug_ins(group).values():
        try:
            import_plug_in(entry_point)
        except PlugInError as error:
            import logging  # which the help, too, would wait for

            logging.getLogger("tracekit").warning("%s", error)


def import_plug_in(entry_point: "EntryPoint") -> None:
    """Import it. Raises PlugInError whatever happens meanwhile: the code is not ours."""
    try:
        entry_point.load()
    except Exception as error:
        package = entry_point.dist.name if entry_point.dist is not None else entry_point.module
        raise PlugInError(package, entry_point.value, f"{type(error).__name__}: {error}") from error
