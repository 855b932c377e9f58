"""Names that will go away: each works for two more minor versions, and says what replaces it.

A deprecation is an entry of `DEPRECATED`, under the name that tests/stability/promised.json has for it:

    "python: tracekit.old": Deprecation("1.1", "use tracekit.new"),
    "option: report --old": Deprecation("1.1", "use --new"),

The entry is all that a name of `tracekit` itself, a verb or an option needs: whoever uses it is warned. Any other
function is decorated with `deprecated`. Names in what is written (columns, keys, ids) cannot warn their readers:
docs/stability.md lists them. A test fails once the version has come in which a name ends, and it is still there.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import wraps
from typing import NamedTuple, ParamSpec, TypeVar

_LIVES = 2  # minor versions that warn, the one in which it began included

P = ParamSpec("P")
R = TypeVar("R")


class Deprecation(NamedTuple):  # no Struct: `tracekit --help` does without msgspec
    """When a name began to be deprecated, and what to do instead, as an imperative without a full stop."""

    since: str  # "1.1"
    instead: str

    @property
    def ends(self) -> str:
        """The version in which it may be gone."""
        major, minor = self.since.split(".")[:2]
        return f"{major}.{int(minor) + _LIVES}"


DEPRECATED: Mapping[str, Deprecation] = {}


def message(name: str) -> str:
    """What the user of a deprecated name is told: when it goes, and what to do."""
    _, _, shown = name.partition(": ")
    deprecation = DEPRECATED[name]
    return f"{shown} goes away in tracekit {deprecation.ends}: {deprecation.instead}."


def warn(name: str, stacklevel: int = 2) -> None:
    """Warn whoever called the caller, if the name is deprecated."""
    if name in DEPRECATED:
        warnings.warn(message(name), FutureWarning, stacklevel + 1)


def deprecated(name: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a function or a method warn whoever calls it; the name is its own in `DEPRECATED`."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def warned(*args: P.args, **kwargs: P.kwargs) -> R:
            warn(name)
            return function(*args, **kwargs)

        return warned

    return decorate


def of_command_line(verb: str, arguments: Iterable[str]) -> Iterator[str]:
    """The message for each deprecated name among a verb and its arguments."""
    options = (f"option: {verb} {argument.partition('=')[0]}" for argument in arguments)
    return (message(name) for name in dict.fromkeys((f"verb: {verb}", *options)) if name in DEPRECATED)
