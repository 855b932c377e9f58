"""Runs in a reader: turns one trace into columns, or into a sentence that says why it cannot."""

from pathlib import Path

from msgspec import Struct

from tracekit.errors import TracekitError
from tracekit.ranks import RankColumns, read_rank


class Lost(Struct, frozen=True):
    """A rank that could not be read, and why. It is returned, because an exception may not survive pickling."""

    path: Path
    why: str


def read_one(path: Path, infer_steps: bool = True) -> RankColumns | Lost:
    """The columns of a trace, or what is wrong with it, so that the reader can continue with the next."""
    try:
        return read_rank(path, infer_steps=infer_steps, workers=1)
    except (TracekitError, OSError, MemoryError) as error:
        return Lost(path, str(error) or type(error).__name__)
