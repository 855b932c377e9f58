"""What runs in a reader: one trace in, columns or a sentence out."""

from dataclasses import dataclass
from pathlib import Path

from tracekit.errors import TracekitError
from tracekit.ranks import RankColumns, read_rank


@dataclass(frozen=True)
class Lost:
    """A rank that is not there, and why. It is returned: an exception might not survive the way between processes."""

    path: Path
    why: str


def read_one(path: Path, infer_steps: bool = False) -> RankColumns | Lost:
    """The columns of a trace; whatever is wrong with it is said, and the reader goes on to the next."""
    try:
        return read_rank(path, infer_steps=infer_steps, workers=1)
    except (TracekitError, OSError, MemoryError) as error:
        return Lost(path, str(error) or type(error).__name__)
