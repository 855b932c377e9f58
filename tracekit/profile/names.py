"""What is a variant called? By its file or its run, and by what distinguishes it from the others."""

from collections.abc import Sequence
from itertools import count
from pathlib import Path

from tracekit.trace.reading.inputs import STDIN

_ENDINGS = (".tmp", ".gz", ".zst", ".json", ".trace", ".pt")


def stem(path: Path) -> str:
    """The name of a file without the suffixes that say what kind of file it is."""
    if str(path) == STDIN:
        return "stdin"
    name = path.name
    for ending in _ENDINGS:
        name = name.removesuffix(ending)
    return spelled(name or path.name)


def spelled(path: str | Path) -> str:
    """A path as text that every table can hold: bytes that are not text are escaped."""
    return str(path).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def distinct(names: Sequence[str]) -> list[str]:
    """The names, with a number appended to those that occur already."""
    given: list[str] = []
    for name in names:
        others = (f"{name} ({number})" for number in count(2))
        given.append(name if name not in given else next(n for n in others if n not in names and n not in given))
    return given


def run_names(paths: Sequence[Path], recipes: Sequence[str]) -> list[str]:
    """What runs are called: by their recipes, their files or their folders, whichever first distinguishes them."""
    ways = (list(recipes), [stem(path) for path in paths], [path.resolve().parent.name for path in paths])
    chosen = next((way for way in ways if len(set(way)) == len(way)), list(recipes))
    return distinct(chosen)
