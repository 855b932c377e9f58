"""Things that register themselves when their module is imported: questions, rules, sections, faces."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

Entry = TypeVar("Entry")


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
