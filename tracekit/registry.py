"""Things that register themselves when their module is imported: questions, rules, sections, faces."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

Entry = TypeVar("Entry")


class Registry(Mapping[str, Entry]):
    """Entries by name, in the order in which they were registered."""

    def __init__(self, kind: str) -> None:
        self._kind = kind  # what the entries are, in the plural
        self._entries: dict[str, tuple[Entry, str]] = {}  # each with the function that it was made of

    def register(self, name: str, entry: Entry, function: Callable[..., Any]) -> None:
        """Add what was made of a function. Raises ValueError where another one's has that name: it would be lost.

        The same function again takes its own place: a notebook's cell may be run twice, and a module reloaded.
        """
        origin = f"{function.__module__}.{getattr(function, '__qualname__', type(function).__qualname__)}"
        _, earlier = self._entries.get(name, (None, origin))
        if earlier != origin:
            raise ValueError(f"two {self._kind} are called {name!r}, {earlier} and {origin}: rename one of them")
        self._entries[name] = entry, origin

    def unregister(self, name: str) -> None:
        """Remove an entry; nothing happens where there is none of that name."""
        self._entries.pop(name, None)

    def __getitem__(self, name: str) -> Entry:
        return self._entries[name][0]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)
