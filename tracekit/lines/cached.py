"""The means of owners, from the cache where the same rules made them of the same recordings before."""

import hashlib

import msgspec

from tracekit.intervals import Bools
from tracekit.lines.means import OwnerMeans, owner_means
from tracekit.lines.ownership import Ownership
from tracekit.lines_file import lines_path
from tracekit.trace.storing.cache import file_state
from tracekit.trace.storing.code_version import code_version


def known_means(ownership: Ownership, counted: dict[str, Bools]) -> OwnerMeans:
    """What each owner costs in a counted step of each view."""
    entry = ownership.cost.trace.entry
    if entry is None:
        return owner_means(ownership, counted)
    name = f"lines-{code_version(__name__)}-{_digest(ownership, counted)}.json"
    content = entry.recall(name)
    if content is not None:
        try:
            return msgspec.json.decode(content, type=OwnerMeans)
        except msgspec.DecodeError:
            pass
    means = owner_means(ownership, counted)
    entry.remember(name, msgspec.json.encode(means))
    return means


def _digest(ownership: Ownership, counted: dict[str, Bools]) -> str:
    """A name for all that the means depend on besides the trace."""
    path = ownership.detail or ownership.cost.trace.path
    states = [file_state(file) for file in (path, lines_path(path))]
    steps = [(view, chosen.tobytes()) for view, chosen in counted.items()]
    causes = (states, sorted(ownership.mine), ownership.graphs, steps)
    return hashlib.sha256(repr(causes).encode("utf-8", "surrogatepass")).hexdigest()[:16]
