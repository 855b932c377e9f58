"""The progress of a pass: its process writes it to a file now and then, and the waiting process reports it."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import msgspec

from tracekit.atomic import put
from tracekit.units import duration

_FILE = "progress.json"
_WRITTEN_EVERY_NS = 1_000_000_000
_SAID_EVERY_S = 15  # also before the first report: most passes are over by then
_STALE_S = 10


class Expected(Protocol):
    """What is known of the steps to come."""

    def steps(self) -> int:
        """The number of all steps."""

    def left_ns(self, steps_taken: int) -> int | None:
        """How long those after the first `taken` will take; None if that cannot be known."""


class _Progress(msgspec.Struct):
    taken: int
    wanted: int
    left_ns: int | None


class Writer:
    """The side of the pass, which costs one comparison per step."""

    def __init__(self, folder: str) -> None:
        self._file = Path(folder, _FILE) if folder else None
        self._next_ns = 0

    def took(self, steps_taken: int, expected: Expected, now_ns: int) -> None:
        """Note how many steps were taken, and how many are expected."""
        if self._file is None or now_ns < self._next_ns:
            return
        self._next_ns = now_ns + _WRITTEN_EVERY_NS
        put(self._file, msgspec.json.encode(_Progress(steps_taken, expected.steps(), expected.left_ns(steps_taken))))


class Reader:
    """The side of the waiting process."""

    def __init__(self, folder: Path, tell: Callable[[str], None]) -> None:
        self._file, self._tell = folder / _FILE, tell
        self._file.unlink(missing_ok=True)
        self._next_s = time.monotonic() + _SAID_EVERY_S

    def look(self) -> None:
        """Report the progress, unless it was reported recently."""
        if time.monotonic() < self._next_s or not self._file.exists():
            return
        self._next_s = time.monotonic() + _SAID_EVERY_S
        progress = msgspec.json.decode(self._file.read_bytes(), type=_Progress)
        sentence = f"  step {progress.taken} of about {max(progress.taken, progress.wanted)}"
        age_s = time.time() - self._file.stat().st_mtime
        if age_s > _STALE_S:  # a long step, or what follows the steps: writing a trace
            sentence = f"{sentence} was reached {age_s:.0f} s ago"
        elif progress.left_ns is not None:
            sentence = f"{sentence}, about {duration(progress.left_ns)} left for the steps of this pass"
        self._tell(sentence)
