"""The mean costs of owners, from the cache if the same rules made them from the same recordings before."""

from tracekit.base.intervals import Bools
from tracekit.lines.means import OwnerMeans, owner_means
from tracekit.lines.ownership import Ownership
from tracekit.trace.storing import cache
from tracekit.trace.storing.cache import Entry, file_state, recall, remember, result_name
from tracekit.vocabulary.lines_file import lines_path


def known_means(ownership: Ownership, counted: dict[str, Bools]) -> OwnerMeans:
    """What each owner costs in a counted step of each view."""
    entry = entry_of(ownership)
    if entry is not None and (means := recall(entry, _name(ownership, counted), OwnerMeans)) is not None:
        return means
    means = owner_means(ownership, counted)
    if entry := entry or entry_of(ownership):  # reading the recording for the first time made an entry
        remember(entry, _name(ownership, counted), means)
    return means


def entry_of(ownership: Ownership) -> Entry | None:
    """The cache's entry of the trace or, where it is too small to have one, that of its recording with stacks."""
    if ownership.attribution.trace.entry is not None:
        return ownership.attribution.trace.entry
    content = cache.content_of(ownership.detail) if ownership.detail is not None and cache.is_on() else None
    return cache.find(content) if content is not None else None


def _name(ownership: Ownership, counted: dict[str, Bools]) -> str:
    """It holds everything that the means depend on, wherever they are stored."""
    trace = ownership.attribution.trace
    path = ownership.detail or trace.path
    states = [file_state(file) for file in (trace.path, path, lines_path(path))]
    steps = [column.tobytes() for column in (trace.steps.issued, trace.steps.returned, *counted.values())]
    causes = states, sorted(ownership.mine), ownership.graphs, [*counted], steps
    return result_name("lines", __name__, causes=causes)
