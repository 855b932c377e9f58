"""What does each owner of a variant cost in a counted step? Plain data, from the cache if the same rules made it from
the same recordings before.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import msgspec
import numpy as np

from tracekit.base import disclosure
from tracekit.base.intervals import Bools
from tracekit.engine.buckets import KEYS
from tracekit.lines.owners import PHASES, Group
from tracekit.lines.ownership import Ownership
from tracekit.trace.storing import cache
from tracekit.trace.storing.cache import Entry, file_state, recall, remember, result_name
from tracekit.vocabulary.lines_file import lines_path

Key = TypeVar("Key")
Result = TypeVar("Result")


class Owner(NamedTuple):
    """The owner of a stretch of time."""

    lines: Group = ()  # one, several that were fused, or none
    library: str = ""
    module: tuple[str, ...] = ()  # outermost first
    phase: str = PHASES[0]


class OwnerMean(NamedTuple):
    """What one owner costs in one bucket of a counted step."""

    owner: int
    view: str
    bucket: str
    step_ns: float
    divided_ns: float  # of this, estimated


class Extent(NamedTuple):
    """Where a function of the user's is: its file, its first line and its last."""

    file: str
    name: str
    first: int
    last: int


class OwnerMeans(msgspec.Struct, frozen=True, kw_only=True):
    """The means of all owners of a variant; if `reason` says why nothing is known, there are none."""

    reason: str | None = None
    owners: list[Owner] = []
    means: list[OwnerMean] = []
    sources: dict[str, str] = {}  # the user's files, as they were
    functions: list[Extent] = []
    graph_calls: int = 0  # calls of compiled graphs
    calls_without_lines: int = 0  # of these, calls for whose kernels no lines are known
    by_code_calls: int = 0  # of these, calls whose lines only the comments in the generated code show
    by_calls: bool = False  # lines are those of calls alone: the interpreter did not mark them
    keeps_no_lines: bool = False  # the backend does not say which lines its graphs come from
    unproven: list[str] = []  # packages that may be the user's: nothing in the trace says

    def by(
        self, view: str, key: Callable[[Owner], Key], chosen: Callable[[OwnerMean], bool] | None = None
    ) -> dict[Key, float]:
        """What a counted step of a view takes, ns, by a property of the owners."""
        total: dict[Key, float] = {}
        for mean in self.means:
            if mean.view == view and (chosen is None or chosen(mean)):
                value = key(self.owners[mean.owner])
                total[value] = total.get(value, 0.0) + mean.step_ns
        return total

    def divided_ns(self, view: str) -> float:
        """The part of a step that is estimated."""
        return sum(mean.divided_ns for mean in self.means if mean.view == view)


def known_means(ownership: Ownership, counted: dict[str, Bools]) -> OwnerMeans:
    """What each owner costs in a counted step of each view."""
    trace = ownership.attribution.trace

    def name() -> str:
        """It holds everything that the means depend on, wherever they are stored."""
        path = ownership.detail or trace.path
        states = [file_state(file) for file in (trace.path, lines_path(trace.path), path, lines_path(path))]
        steps = [column.tobytes() for column in (trace.steps.issued, trace.steps.returned, *counted.values())]
        causes = states, sorted(ownership.mine), ownership.graphs, [*counted], steps
        return result_name("lines", __name__, causes=causes)

    means = kept_with_recording(ownership, name, OwnerMeans, lambda: owner_means(ownership, counted))
    assert means is not None
    return means


def kept_with_recording(
    ownership: Ownership, name: Callable[[], str], kind: type[Result], make: Callable[[], Result | None]
) -> Result | None:
    """What `make` gives, or gave when it was stored under that name: beside the trace or, where that is too small for
    an entry in the cache, beside its recording with stacks, which has none before it is read for the first time."""
    entry = _entry_of(ownership)
    if entry is not None and (stored := recall(entry, name(), kind)) is not None:
        return stored
    result = make()
    if result is not None and (entry := entry or _entry_of(ownership)):
        remember(entry, name(), result)
    return result


def _entry_of(ownership: Ownership) -> Entry | None:
    if ownership.attribution.trace.entry is not None:
        return ownership.attribution.trace.entry
    if disclosure.current() is not None:  # what is computed of stand-ins must not be taken for names, nor the reverse
        return None
    content = cache.content_of(ownership.detail) if ownership.detail is not None and cache.is_on() else None
    return cache.find(content) if content is not None else None


def owner_means(ownership: Ownership, counted: dict[str, Bools]) -> OwnerMeans:
    """The means over the counted steps of each view; a view without counted steps has none."""
    if ownership.reason is not None:
        return OwnerMeans(reason=ownership.reason)
    means = []
    for view, costs in ownership.costs.items():
        is_counted_step = counted[view]
        if not is_counted_step.any():
            continue
        in_counted = is_counted_step[costs.step]
        keys, inverse = np.unique(costs.owner[in_counted] * len(KEYS) + costs.bucket[in_counted], return_inverse=True)
        ns, shared = (np.zeros(len(keys), np.int64) for _ in range(2))
        np.add.at(ns, inverse.reshape(-1), costs.ns[in_counted])
        np.add.at(shared, inverse.reshape(-1), costs.divided_ns[in_counted])
        steps = int(is_counted_step.sum())
        for key, total, estimated in zip(keys.tolist(), ns.tolist(), shared.tolist(), strict=True):
            owner, bucket = divmod(key, len(KEYS))
            means.append(OwnerMean(owner, view, KEYS[bucket], total / steps, estimated / steps))
    owners, lines = ownership.owners, ownership.source_lines
    codes = lines.code if lines is not None else []
    return OwnerMeans(
        owners=[
            Owner(
                owners.groups[row.group], owners.libraries[row.library], owners.modules[row.module], PHASES[row.phase]
            )
            for row in owners.rows
        ],
        means=means,
        sources=lines.sources if lines is not None else {},
        functions=[Extent(code.file, code.function, code.line, max(code.lines)) for code in codes],
        graph_calls=ownership.compiled.calls,
        calls_without_lines=ownership.compiled.without_lines,
        by_code_calls=ownership.compiled.by_code,
        by_calls=ownership.by_calls,
        keeps_no_lines=len(ownership.regions_without_lines) > 0,
        unproven=ownership.unproven,
    )
