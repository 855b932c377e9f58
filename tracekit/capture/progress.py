"""The progress of a pass: its process writes it to a file now and then, and the waiting process reports it."""

import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from tracekit.atomic import put
from tracekit.units import duration

_FILE = "progress.json"
_WRITTEN_EVERY_NS = 1_000_000_000
_SAID_EVERY_S = 15  # also before the first report: most passes are over by then


class _Progress(msgspec.Struct):
    taken: int
    wanted: int
    step_ns: int


class Writer:
    """The side of the pass, which costs one comparison per step."""

    def __init__(self, folder: str, wanted: int) -> None:
        self._file = Path(folder, _FILE) if folder else None
        self._wanted = wanted
        self._next_ns = 0

    def took(self, taken: int, now_ns: int, last_ns: int) -> None:
        """Note how many steps were taken, and how long the last one took."""
        if self._file is None or now_ns < self._next_ns:
            return
        self._next_ns = now_ns + _WRITTEN_EVERY_NS
        put(self._file, msgspec.json.encode(_Progress(taken, self._wanted, now_ns - last_ns)))


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
        known = msgspec.json.decode(self._file.read_bytes(), type=_Progress)
        if known.taken < known.wanted:
            left = (known.wanted - known.taken) * known.step_ns
            self._tell(f"  step {known.taken} of about {known.wanted}, about {duration(left)} left")
        else:
            self._tell(f"  step {known.taken}, more than expected: a pass waits until nothing compiles any more")
