"""How does the time of a step depend on the size of its graph: what is fixed, what does an edge cost, and what do nodes
and edges cost that are only padding? And which of the sizes makes the compiler compile again?
"""

import math
import re
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
from msgspec import Struct

from tracekit.base.intervals import Ints, distinct
from tracekit.profile import Member, Profile
from tracekit.run import GraphSizes, Variant
from tracekit.statistics.robust_line import LinearFit, fit
from tracekit.statistics.typical_step import typical_step
from tracekit.statistics.uncertainty import Interval

LEAST_SIZES = 5  # different ones
LEAST_STEPS = 10
_FLAT = 0.1  # of a step: a part that is at most this, and may be nothing, counts as nothing
_NOTHING = 0.03  # of a step: a smaller part counts as nothing, however certain it is
_COINCIDING = 0.5  # of the variance of sizes, by the place of a step in the period of its pass
_UNKNOWN_FIXED = 0.25  # of a step, to either side: with a wider interval, the fixed part is unknown
Growth = Literal["grows", "flat", "unclear"]
Dimension = Literal["edges", "nodes"]
_MISMATCH = re.compile(r"tensor '(.+)' size mismatch at index (\d+)\. expected \d+, actual (\d+)")
_SIZE_GUARD = re.compile(r"(L\[.+\])\.size\(\)\[(\d+)\] ==")


class SizedSteps(Struct, frozen=True):
    """Steps whose graph is known, a row each; nodes are −1 if unknown."""

    nodes: Ints
    edges: Ints
    step_ns: Ints
    passes: Ints  # which unprofiled pass each step is of
    places: Ints  # in the period after which steps repeat; all 0 where they do not
    period: int  # 1 if they do not repeat
    typical_ns: int  # how long a step takes
    unprofiled: bool  # False: of the trace

    def of(self, dimension: Dimension) -> Ints:
        """That size of each step."""
        return self.edges if dimension == "edges" else self.nodes

    def different(self, dimension: Dimension) -> int:
        """The number of different sizes."""
        return len(distinct(self.of(dimension)))

    @property
    def dimension(self) -> Dimension:
        """The size that varies: edges, unless only nodes vary."""
        varies = self.different("edges") < LEAST_SIZES <= self.different("nodes")
        return "nodes" if varies and bool((self.nodes >= 0).all()) else "edges"


class GraphCost(Struct, frozen=True, dict=True):
    """How the step time of one variant depends on the size of its graph."""

    steps: SizedSteps

    @property
    def dimension(self) -> Dimension:
        """The size that step times are fitted to."""
        return self.steps.dimension

    @cached_property
    def sizes(self) -> Ints:
        """That size in each step."""
        return self.steps.of(self.dimension)

    @property
    def is_constant(self) -> bool:
        """Whether every step has the same graph."""
        return self.steps.different(self.dimension) == 1

    @property
    def why_not(self) -> str:
        """Why no line can be fitted; empty if one can."""
        different = self.steps.different(self.dimension)
        if self.is_constant:
            return "every step has the same graph"
        if different < LEAST_SIZES or len(self.sizes) < LEAST_STEPS:
            return f"{different} different sizes in {len(self.sizes)} steps are too few"
        if self._coincide:
            return (
                f"every {self.steps.period} steps, sizes and step times repeat together, so whatever else happens in "
                "some of these steps would count as a cost of their size"
            )
        return ""

    @property
    def _coincide(self) -> bool:
        """Whether the place of a step in the period tells its size: how much less sizes vary among steps at one place
        of one pass than among all steps of a pass."""
        steps = self.steps
        if steps.period == 1:
            return False
        among_all = _variance(self.sizes, steps.passes)
        at_one_place = _variance(self.sizes, steps.passes * steps.period + steps.places)
        return at_one_place < (1 - _COINCIDING) * among_all

    @cached_property
    def line(self) -> LinearFit | None:
        """The fitted line: fixed ns, and ns per edge (or node)."""
        if self.why_not:
            return None
        return fit(self.sizes.astype(float), self.steps.step_ns.astype(float), self.steps.passes)

    @property
    def growth(self) -> Growth:
        """Whether larger graphs take longer; `unclear` if the interval allows both nothing and much."""
        if self.line is None:
            return "unclear"
        low, high = self.line.slope_interval
        largest = max(abs(low), abs(high)) * float(np.median(self.sizes)) / self.steps.typical_ns
        if largest <= (_FLAT if low <= 0 <= high else _NOTHING):
            return "flat"
        return "grows" if low > 0 else "unclear"

    @property
    def knows_fixed(self) -> bool:
        """Whether the sizes differ enough to show what a step without a graph would take."""
        if self.line is None:
            return False
        low, high = self.line.fixed_interval
        return (high - low) / 2 <= _UNKNOWN_FIXED * self.steps.typical_ns

    @property
    def growing_share(self) -> float:
        """The part of a step of median size that grows in proportion to its graph."""
        assert self.line is not None
        at_middle = self.line.slope * float(np.median(self.sizes))
        return min(max(at_middle / (self.line.fixed + at_middle), 0.0), 1.0)


def graph_cost(member: Member) -> GraphCost | None:
    """The graph cost of a variant; None if no graph was seen: bare traces, older runs, trainings without graphs."""
    steps = _unprofiled(member)
    if steps is None and isinstance(member, Profile):
        steps = _of_trace(member)
    return GraphCost(steps) if steps is not None else None


def _unprofiled(member: Member) -> SizedSteps | None:
    """The steps of the counted passes."""
    measured = member.variant.measured if member.variant is not None else None
    passes = measured.counted_passes if measured is not None else []
    period = statistics.mode([measured_pass.period for measured_pass in passes] or [1])
    rows = [
        row
        for number, measured_pass in enumerate(passes)
        if measured_pass.graphs is not None
        for row in _rows(
            measured_pass.graphs, measured_pass.step_all_ns, range(len(measured_pass.step_all_ns)), number, period
        )
    ]
    return _sized(rows, period, measured.step_ns, unprofiled=True) if measured is not None and rows else None


def _of_trace(profile: Profile) -> SizedSteps | None:
    """The counted steps of the trace."""
    graphs = profile.variant.graphs if profile.variant is not None else None
    view = profile.views["wall"] if profile.answered["wall"].any() else profile.views["host"]
    if graphs is None:
        return None
    numbers = np.asarray(profile.trace.steps.number)
    is_sized = profile.counted & (numbers >= 0) & (numbers < len(graphs.edges))
    step_numbers, step_ns = numbers[is_sized].tolist(), view.step_ns[is_sized].tolist()
    if not step_numbers:
        return None
    nodes = [graphs.nodes[number] if number < len(graphs.nodes) else None for number in step_numbers]
    picked = GraphSizes(nodes=nodes, edges=[graphs.edges[number] for number in step_numbers])
    typical = typical_step(step_ns)
    rows = [*_rows(picked, step_ns, step_numbers, 0, typical.period)]
    return _sized(rows, typical.period, typical.step_ns, unprofiled=False) if rows else None


def _rows(
    graphs: GraphSizes, step_ns: Sequence[int], steps: Sequence[int], number: int, period: int
) -> Iterator[tuple[int, int, int, int, int]]:
    """Nodes, edges, duration, pass and place of each step whose edges are known."""
    nodes = graphs.nodes or [None] * len(graphs.edges)
    for count, edges, ns, step in zip(nodes, graphs.edges, step_ns, steps, strict=False):
        if edges is not None:
            yield -1 if count is None else count, edges, ns, number, step % period


def _sized(rows: list[tuple[int, int, int, int, int]], period: int, typical_ns: int, *, unprofiled: bool) -> SizedSteps:
    nodes, edges, step_ns, passes, places = np.array(rows, np.int64).T
    return SizedSteps(nodes, edges, step_ns, passes, places, period, typical_ns, unprofiled)


def _variance(values: Ints, groups: Ints) -> float:
    """The variance of values within their groups; infinite if no group has two."""
    _, group, counts = np.unique(groups, return_inverse=True, return_counts=True)
    means = np.bincount(group, values) / counts
    freedom = len(values) - len(counts)
    return float(((values - means[group]) ** 2).sum()) / freedom if freedom else math.inf


class Padding(NamedTuple):
    """What a variant adds to the graphs of its sibling, the mean over their steps."""

    sibling: str
    sizes: int  # how many different ones graphs are filled up to
    edges: float  # the share of the variant's edges that its sibling does not have
    nodes: float | None  # the same of its nodes; None if these are unknown
    cost_ns: float | None  # a step; None where it is unknown what an edge costs
    cost_interval: Interval | None  # 95 %, ns
    by_sibling: bool  # whether the sibling's cost of an edge had to be taken, because the variant's own is unknown


def padding(padded: GraphCost, siblings: Sequence[tuple[str, GraphCost]]) -> Padding | None:
    """The padding of a variant, inferred if its graphs have few sizes, each of them several times, and those of a
    sibling have many, none larger."""
    sizes = padded.steps.different("edges")
    if not padded.steps.edges.max() or 2 * sizes > len(padded.steps.edges):
        return None
    for name, sibling in siblings:
        different = sibling.steps.different("edges")
        if different < max(LEAST_SIZES, 2 * sizes) or sibling.steps.edges.max() > padded.steps.edges.max():
            continue
        nodes_known = bool((sibling.steps.nodes >= 0).all()) and int(padded.steps.nodes.max()) > 0
        cost_ns, interval, by_sibling = _cost(padded, sibling)
        return Padding(
            name,
            sizes,
            _share(_filled(padded, sibling, "edges"), sibling.steps.edges),
            _share(_filled(padded, sibling, "nodes"), sibling.steps.nodes) if nodes_known else None,
            cost_ns,
            interval,
            by_sibling,
        )
    return None


def _filled(padded: GraphCost, sibling: GraphCost, dimension: Dimension) -> Ints:
    """The size to which each of the sibling's graphs is filled up: the smallest with room for it."""
    rooms, sizes = distinct(padded.steps.of(dimension)), sibling.steps.of(dimension)
    filled: Ints = rooms[np.minimum(np.searchsorted(rooms, sizes), len(rooms) - 1)]
    return filled


def _share(filled: Ints, sizes: Ints) -> float:
    return 1 - float(sizes.sum()) / float(filled.sum())


def _cost(padded: GraphCost, sibling: GraphCost) -> tuple[float | None, Interval | None, bool]:
    """What the padding adds to a step, by the line of the variant itself or, if it has none, of its sibling."""
    for by_sibling, cost in enumerate((padded, sibling)):
        if cost.line is not None and cost.growth == "grows":
            added = float((_filled(padded, sibling, cost.dimension) - sibling.steps.of(cost.dimension)).mean())
            low, high = cost.line.slope_interval
            return cost.line.slope * added, (low * added, high * added), bool(by_sibling)
    return None, None, False


class Changed(NamedTuple):
    """A dimension of a tensor whose change caused a recompilation, and which size of the graph it is."""

    tensor: str
    dimension: int
    size: str  # "nodes", "edges", "user nodes", "user__rates__movie edges"; empty if it is not a size of the graph
    times: int


def changed_sizes(variant: Variant) -> list[Changed]:
    """The changed sizes, the most frequent first; guards on anything else are left out."""
    named_sizes: list[tuple[str, Sequence[int | None]]] = []
    if (graphs := variant.graphs) is not None:
        named_sizes += [("nodes", graphs.nodes), ("edges", graphs.edges)]
        named_sizes += [(f"{kind} nodes", counts) for kind, counts in graphs.node_types.items()]
        named_sizes += [(f"{kind} edges", counts) for kind, counts in graphs.edge_types.items()]
    counted: Counter[tuple[str, int, str]] = Counter()
    for compilation in variant.ledger.compiles:
        text, step = compilation.guard or compilation.reason or "", compilation.step
        mismatch = _MISMATCH.search(text)
        guard = mismatch or _SIZE_GUARD.search(text)
        if compilation.kind == "recompile" and guard is not None:
            actual = int(mismatch[3]) if mismatch else None  # the size of that dimension
            names = (
                name
                for name, counts in named_sizes
                if actual is not None and step is not None and 0 <= step < len(counts) and counts[step] == actual
            )
            counted[guard[1], int(guard[2]), next(names, "")] += 1
    return [Changed(*key, times) for key, times in counted.most_common()]
