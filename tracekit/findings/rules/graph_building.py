"""Are graphs built in the loop itself: neighbours searched or sampled, edges added and ordered, graphs collated?"""

import re
from collections.abc import Iterator
from functools import reduce

from tracekit.base.intervals import NO_TIME, Union
from tracekit.base.names import sanitize
from tracekit.base.pages import Cure
from tracekit.base.units import duration, many, percent
from tracekit.engine.buckets import ON_THE_GPU
from tracekit.findings import Finding, FindingPage, Where, evidence, rule, time_of_rules
from tracekit.profile import LEAST_SHARE, Profile
from tracekit.profile.graph_building import GraphBuilder, per_step_ns

_IN_A_LOADER = 0.5  # of its time: then it is the loader that calls it
_LONGEST_NAME = 60  # signs, in a headline
_LINK = "https://pytorch-geometric.readthedocs.io/en/latest/advanced/batching.html"
_LOADERS = "https://docs.pytorch.org/docs/stable/data.html#multi-process-data-loading"
_SEARCH = (
    "If positions do not change, search once and keep the edges with the sample (the transforms RadiusGraph and "
    "KNNGraph as pre_transform). If they change little, keep a list with a larger cutoff (a skin) for several steps. "
    "Otherwise search on the GPU (torch-cluster or pyg-lib), or in the workers of the loader."
)
_EDGES = (
    "Do it once before training, with the transforms AddSelfLoops, ToUndirected or GCNNorm, and construct the layers "
    "with add_self_loops=False or normalize=False; where the graph is always the same, cached=True does so."
)
_COLLATING = (
    "Let a PyG DataLoader with workers (num_workers) collate the graphs, so that the next batch is made while the "
    "current one is worked on; batches that are always the same can be made once, before the loop."
)
_SAMPLING = (
    "Sample in the workers of a loader (NeighborLoader with num_workers), so that the next batch is made while the "
    "current one is worked on; pyg-lib samples in C++."
)
_GENERAL = "Build it once and keep it, if it is the same in every step; otherwise build it in the workers of a loader."
_ADVICE = (  # of several names in one line, the first that fits the costliest
    (
        re.compile(r".*(?:radius|knn|nearest|neighbou?r_?(?:list|hood)|neighbor_pairs|kneighbors|generate_graph).*"),
        _SEARCH,
    ),
    (re.compile(r".*(?:self_loop|undirected|coalesce|gcn_norm|sort_edge_index|reverse_edges).*"), _EDGES),
    (re.compile(r"from_data_list|_?_?collate.*|batch"), _COLLATING),
    (re.compile(r".*(?:sampl|random_walk|subgraph).*"), _SAMPLING),
)


_PAGE = FindingPage(
    "graph_building",
    "Graphs are built in the loop",
    says="""For at least 2 % of a step, the main thread builds a graph, or the GPU does so for it: neighbours are
        searched (`radius_graph`, `knn_graph`, neighbour lists) or sampled, edges are added, ordered or weighted
        (`to_undirected`, `coalesce`, `add_self_loops`, `gcn_norm`), or graphs are collated
        (`Batch.from_data_list`). Each line that calls for it has a finding.""",
    slow="""The model cannot start before its edges are there. Sampling and collating run on the CPU, and a search for
        neighbours reads its results back to learn their number, which makes the host wait for the GPU. Often the
        result is the same in every step, or could have been made ahead.""",
    cost="""It claims the time of a step that the host spends in these calls while the GPU idles, and the GPU's work
        that they submit. What a graph break inside of them costs is told by `graph_breaks`. Inside a loader without
        workers, `dataloader_bound` claims the same time: the cost counts once, for the costlier of the two.""",
    limits="""Functions are known by their names and files: those of PyG, torch-cluster, torch-sparse, pyg-lib, DGL, ASE
        and similar libraries, and functions of yours with usual names, such as `radius_graph` or `neighbor_list`.
        Others can be wrapped in `record_function("graph building")`. Without Python stacks only operators of
        pyg-lib, torch-cluster and torch-sparse are seen, and such spans. Whether positions or edges change between
        steps is not in a trace.""",
    cures=(
        Cure("Build the graph once, and keep it, where neither positions nor edges change.", "memory"),
        Cure(
            """Build it ahead, in the workers of a DataLoader (`num_workers`). Workers draw random numbers of their
            own.""",
            "results",
        ),
        Cure("Search on the GPU, with torch-cluster or pyg-lib. Edges may come in another order.", "rounding"),
        Cure(
            """Keep a neighbour list with a larger cutoff (a skin) for several steps, and drop pairs beyond the cutoff
            in each; rebuild it when an atom has moved by half the skin.""",
            "rounding",
        ),
        Cure(
            """Add self-loops, reverse edges and norms once, as transforms before training, or construct the layer with
            `cached=True`, which must not be done where the graph changes.""",
            "memory",
        ),
    ),
    links=(_LINK, _LOADERS),
)


def _told(profile: Profile) -> list[tuple[GraphBuilder, Union]]:
    """Those that take enough of a step, and the time that each is to blame for: not that of a graph break inside."""
    mean = profile.mean
    if mean is None or not profile.graph_builders:
        return []
    in_breaks = time_of_rules(profile, "compiled_code")
    claims = [(builder, builder.wall.minus(in_breaks)) for builder in profile.graph_builders]
    return [(builder, claim) for builder, claim in claims if per_step_ns(profile, claim) >= LEAST_SHARE * mean.step_ns]


def _own_time(profile: Profile) -> Union:
    return reduce(Union.plus, (claim for _, claim in _told(profile)), NO_TIME)


@rule("graph_building", own_time=_own_time, pages=(_PAGE,))
def graph_building(profile: Profile) -> Iterator[Finding]:
    """`graph_building`, one finding for each line that calls for it."""
    mean, pieces = profile.mean, profile.attribution.pieces
    for builder, claim in _told(profile):
        assert mean is not None
        step_ns = per_step_ns(profile, claim)
        line = builder.lines[0] if builder.lines else None
        at = Where(line.file, line.line, line.function) if line is not None else Where()
        name = sanitize(builder.name, _LONGEST_NAME)
        calls = builder.calls / builder.recorded_steps
        often = f" in {many(round(calls, 1), 'call')}" if calls >= 1 else ""
        gpu_ns = per_step_ns(profile, claim.common(pieces.union(pieces.of(*ON_THE_GPU))))
        of_gpu = f", {duration(gpu_ns)} of it on the GPU" if gpu_ns >= LEAST_SHARE * step_ns else ""
        in_loader = per_step_ns(profile, claim.common(pieces.union(pieces.of("dataload")))) / step_ns
        waits = ", while the loop waits for its batch" if in_loader >= _IN_A_LOADER else ""
        yield Finding(
            "graph_building",
            f"Graph building in the loop: {name}{at.at}",
            why=f"It takes {duration(step_ns)} of a step ({percent(step_ns / mean.step_ns)}){often}{of_gpu}{waits}.",
            do=next((advice for names, advice in _ADVICE if names.fullmatch(builder.name.split(", ")[0])), _GENERAL),
            where=at,
            evidence=evidence(profile, builder.rows),
            link=_LOADERS if in_loader >= _IN_A_LOADER else _LINK,
            claim=claim,
            work=builder.work,
            undone=builder.work,
            host=builder.host,
        )
