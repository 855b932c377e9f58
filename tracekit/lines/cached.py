"""The means of owners, from the cache where the same rules made them of the same recordings before."""

import hashlib
from pathlib import Path

import msgspec

from tracekit.intervals import Bools
from tracekit.lines.means import OwnerMeans, owner_means
from tracekit.lines.ownership import Ownership
from tracekit.lines_file import lines_path
from tracekit.trace.storing.cache import version

_CODE = ("lines", "lines_file", "engine", "trace", "intervals")


def known_means(ownership: Ownership, counted: dict[str, Bools]) -> OwnerMeans:
    """What each owner costs in a counted step of each view."""
    entry = ownership.cost.trace.entry
    if entry is None:
        return owner_means(ownership, counted)
    name = f"lines-{version(*_CODE)}-{_told(ownership, counted)}.json"
    held = entry.recall(name)
    if held is not None:
        try:
            return msgspec.json.decode(held, type=OwnerMeans)
        except msgspec.DecodeError:
            pass
    found = owner_means(ownership, counted)
    entry.remember(name, msgspec.json.encode(found))
    return found


def _told(ownership: Ownership, counted: dict[str, Bools]) -> str:
    """A name for all that the means depend on besides the trace."""
    files = (ownership.detail or ownership.cost.trace.path,)
    states = [_state(file) for path in files for file in (path, lines_path(path))]
    told = (states, sorted(ownership.mine), [(view, steps.tobytes()) for view, steps in counted.items()])
    return hashlib.sha256(repr(told).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _state(path: Path) -> tuple[str, int, int]:
    try:
        found = path.stat()
    except OSError:
        return str(path), 0, 0
    return str(path), found.st_size, found.st_mtime_ns
