"""How does the time of a step depend on the size of its graph: what is fixed, and what does an edge cost?"""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from tracekit.intervals import Ints
from tracekit.profile import Member, Profile
from tracekit.robust_line import Line, fit
from tracekit.run import GraphSizes

LEAST_SIZES = 5  # different ones
LEAST_STEPS = 10
_FLAT = 0.1  # of a step: a part that is at most this, and may be nothing, counts as nothing
_NOTHING = 0.03  # of a step: a smaller part counts as nothing, however certain it is
_UNKNOWN_FIXED = 0.25  # of a step, to either side: with a wider interval, the fixed part is unknown
Growth = Literal["grows", "flat", "unclear"]
Dimension = Literal["edges", "nodes"]


@dataclass(frozen=True)
class SizedSteps:
    """Steps whose graph is known, a row each; nodes are −1 if unknown."""

    nodes: Ints
    edges: Ints
    step_ns: Ints
    passes: Ints  # which unprofiled pass each step is of
    unprofiled: bool  # False: of the trace

    def of(self, dimension: Dimension) -> Ints:
        """That size of each step."""
        return self.edges if dimension == "edges" else self.nodes

    def different(self, dimension: Dimension) -> int:
        """The number of different sizes."""
        return len(np.unique(self.of(dimension)))

    @property
    def dimension(self) -> Dimension:
        """The size that varies: edges, unless only nodes vary."""
        varies = self.different("edges") < LEAST_SIZES <= self.different("nodes")
        return "nodes" if varies and bool((self.nodes >= 0).all()) else "edges"


@dataclass(frozen=True)
class GraphCost:
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
    def typical_ns(self) -> float:
        """The median step."""
        return float(np.median(self.steps.step_ns))

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
        return ""

    @cached_property
    def line(self) -> Line | None:
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
        largest = max(abs(low), abs(high)) * float(np.median(self.sizes)) / self.typical_ns
        if largest <= (_FLAT if low <= 0 <= high else _NOTHING):
            return "flat"
        return "grows" if low > 0 else "unclear"

    @property
    def knows_fixed(self) -> bool:
        """Whether the sizes differ enough to show what a step without a graph would take."""
        if self.line is None:
            return False
        low, high = self.line.fixed_interval
        return (high - low) / 2 <= _UNKNOWN_FIXED * self.typical_ns

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
    rows: list[tuple[int, int, int, int]] = []
    for number, each in enumerate(measured.counted_passes if measured is not None else []):
        if each.graphs is not None:
            rows += _rows(each.graphs, each.step_all_ns, number)
    return _sized(rows, unprofiled=True)


def _of_trace(profile: Profile) -> SizedSteps | None:
    """The counted steps of the trace."""
    graphs = profile.variant.graphs if profile.variant is not None else None
    view = profile.views["wall"] if profile.answered["wall"].any() else profile.views["host"]
    if graphs is None:
        return None
    numbers = np.asarray(profile.trace.steps.number)
    chosen = profile.counted & (numbers >= 0) & (numbers < len(graphs.edges))
    at = numbers[chosen].tolist()
    nodes = [graphs.nodes[each] if each < len(graphs.nodes) else None for each in at]
    picked = GraphSizes(nodes=nodes, edges=[graphs.edges[each] for each in at])
    return _sized(_rows(picked, view.step_ns[chosen].tolist(), 0), unprofiled=False)


def _rows(graphs: GraphSizes, step_ns: list[int], number: int) -> list[tuple[int, int, int, int]]:
    nodes = graphs.nodes or [None] * len(graphs.edges)
    rows = zip(nodes, graphs.edges, step_ns, strict=False)
    return [(-1 if count is None else count, edges, ns, number) for count, edges, ns in rows if edges is not None]


def _sized(rows: list[tuple[int, int, int, int]], *, unprofiled: bool) -> SizedSteps | None:
    if not rows:
        return None
    nodes, edges, step_ns, passes = np.array(rows, np.int64).T
    return SizedSteps(nodes, edges, step_ns, passes, unprofiled)
