"""How far has a pass come? Its process writes that down now and then, and the process that waits for it reports it."""

import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from tracekit.atomic import put
from tracekit.units import duration

_FILE = "progress.json"
_WRITTEN_EVERY_NS = 1_000_000_000
_SAID_EVERY_S = 15  # the first time, too: most passes are over by then


class _Progress(msgspec.Struct):
    taken: int
    wanted: int
    step_ns: int


class Writer:
    """In the pass. It costs one comparison a step."""

    def __init__(self, folder: str, wanted: int) -> None:
        self._file = Path(folder, _FILE) if folder else None
        self._wanted = wanted
        self._next_ns = 0

    def took(self, taken: int, now_ns: int, last_ns: int) -> None:
        """So many steps, the last of them from then to now."""
        if self._file is None or now_ns < self._next_ns:
            return
        self._next_ns = now_ns + _WRITTEN_EVERY_NS
        put(self._file, msgspec.json.encode(_Progress(taken, self._wanted, now_ns - last_ns)))


class Reader:
    """Where it is waited for."""

    def __init__(self, folder: Path, tell: Callable[[str], None]) -> None:
        self._file, self._tell = folder / _FILE, tell
        self._file.unlink(missing_ok=True)
        self._next_s = time.monotonic() + _SAID_EVERY_S

    def look(self) -> None:
        """Say how far it is, if it was not said lately."""
        if time.monotonic() < self._next_s or not self._file.exists():
            return
        self._next_s = time.monotonic() + _SAID_EVERY_S
        known = msgspec.json.decode(self._file.read_bytes(), type=_Progress)
        if known.taken < known.wanted:
            left = (known.wanted - known.taken) * known.step_ns
            self._tell(f"  step {known.taken} of about {known.wanted}, about {duration(left)} left")
        else:
            self._tell(f"  step {known.taken}, more than expected: a pass waits until nothing compiles any more")
