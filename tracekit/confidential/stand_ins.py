"""Stand-ins: a kind and a number, in the order in which secrets appear, so that they hold nothing of a secret."""

from tracekit.base.units import many

# What kinds are called where they are counted: one, and several where that is no `s`.
_CALLED = {
    "data": ("data set", ""),
    "trace": ("path of an input", "paths of inputs"),
    "class": ("class", "classes"),
    "address": ("address", "addresses"),
    "process": ("process", "processes"),
    "category": ("category", "categories"),
    "library": ("library", "libraries"),
    "key": ("key of the environment", "keys of the environment"),
}


class StandIns:
    """What stands for each secret; the same secret of a kind always gets the same."""

    def __init__(self) -> None:
        self._numbers: dict[str, dict[str, int]] = {}

    def of(self, kind: str, secret: str) -> str:
        """`function-3`."""
        return f"{kind}-{self.number(kind, secret)}"

    def identifier(self, kind: str, secret: str) -> str:
        """`function_3`: the same where only an identifier is understood, such as in code."""
        return self.of(kind, secret).replace("-", "_")

    def number(self, kind: str, secret: str) -> int:
        """The 3 of `function-3`."""
        numbers = self._numbers.setdefault(kind, {})
        return numbers.setdefault(secret, len(numbers) + 1)

    def has(self, text: str) -> bool:
        """Whether a text is a stand-in, so that a text which has some may be looked through again."""
        kind, _, number = text.rpartition("-")
        return kind in self._numbers and number.isdecimal() and 0 < int(number[:9]) <= len(self._numbers[kind])

    def counted(self) -> str:
        """`3 files, 12 functions and 1 kernel`; empty if nothing was replaced."""
        parts = [many(len(numbers), *_CALLED.get(kind, (kind,))) for kind, numbers in sorted(self._numbers.items())]
        return " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))
