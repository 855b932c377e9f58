"""Attributes replaced for a while, and put back in the end."""

from typing import Any


class Replacing:
    """Remembers what stood there."""

    def __init__(self) -> None:
        self._before: list[tuple[Any, str, Any, bool]] = []

    def __enter__(self) -> "Replacing":
        return self

    def __exit__(self, *_: object) -> None:
        for holder, name, before, defined_there in reversed(self._before):
            if defined_there:
                setattr(holder, name, before)
            else:
                delattr(holder, name)

    def replace(self, holder: Any, **names: Any) -> None:
        """`replace(torch.cuda, is_available=…)`; a name that is not there is left out: it is another version's."""
        for name, new in names.items():
            if hasattr(holder, name):
                self._before.append((holder, name, vars(holder).get(name), name in vars(holder)))
                setattr(holder, name, new)
