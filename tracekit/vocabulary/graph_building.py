"""Which operators and functions make a graph, or the list of its edges: samplers, neighbour searches, collates of
graphs, and what adds, removes, orders or weights edges?

Known by name, as the profiler records them: operators always, functions only where Python stacks are recorded, and
spans of a program of yours (`record_function("graph building")`).
"""

import re
from functools import lru_cache

from tracekit.vocabulary.code_owner import PYTHON, TORCH, TRACEKIT, owner_by_path, plain_function, profiled

_OPERATOR = re.compile(
    r"(?:pyg|torch_sparse|torch_cluster)::(?:\w*(?:neighbor|hop)_sampl\w+|\w*relabel\w*|\w*merge_sampler_outputs"
    r"|random_walk|(?:hetero_)?subgraph|saint_subgraph|sample_adj|hgt_sample|ego_k_hop_sample_adj|partition2?|metis"
    r"|radius|knn|nearest|fps|neighbor_sampler)"
    r"|torchmdnet(?:_extensions)?::get_neighbor_pairs\w*"
)
_SPAN = re.compile(
    r"(?:graph|edge|neighbou?r(?:hood)?)[ _-](?:building|construction|search|sampling|list)", re.IGNORECASE
)
# Of any file that is neither torch's nor Python's: no other function would be called so.
_ANYWHERE = re.compile(
    r"(?:radius|knn)_graph(?:_pbc\w*)?|_?(?:get_|compute_|build_|primitive_|make_)?neighbou?r_?list\w*"
    r"|build_(?:radius|knn|neighbou?r)_graph|get_neighbou?rhood|to_undirected"
    r"|(?:add|remove)_(?:remaining_)?self_loops?|k_hop_subgraph|from_data_list|sample_from_(?:nodes|edges)|sample_neighbou?rs|neighbou?r_sampl\w+"
)
_OF_LIBRARIES = tuple(
    (re.compile(rf"(?:.*/)?{path}.*", re.DOTALL), re.compile(functions))
    for path, functions in (
        (r"torch_geometric/(?:sampler|loader)/", r"_*(?:\w+_)?samples?(?:_\w+)?|__collate__|_collate"),
        (r"torch_geometric/nn/models/(?:node2vec|metapath2vec)\.py", r"(?:pos_|neg_)?sample"),
        (
            r"torch_geometric/(?:utils|nn|data|transforms|edge_index\.py)",
            r"coalesce|sort_edge_index|\w*subgraph|dense_to_sparse|(?:batched_|structured_)?negative_sampling|radius|knn"
            r"|nearest|fps|gcn_norm|collate",
        ),
        (
            r"torch_(?:cluster|sparse)/",
            r"radius|knn|nearest|fps|random_walk|coalesce|sample\w*|saint_subgraph|from_edge_index",
        ),
        (
            r"dgl/(?:dataloading|sampling|graphbolt)/",
            r"_*(?:\w+_)?sample(?:_\w+)?|random_walk|_?collate\w*|select_topk",
        ),
        (
            r"dgl/(?:batch|convert|subgraph|transforms/\w+|heterograph)\.py",
            r"batch|graph|heterograph|to_block|to_bidirected|to_simple|add_reverse_edges|\w*subgraph|knn_graph|radius_graph",
        ),
        (r"ase/neighborlist\.py", r"update|build"),
        (r"sklearn/neighbors/", r"kneighbors|radius_neighbors|(?:kneighbors|radius_neighbors)_graph"),
        (r"fairchem/|ocpmodels/", r"generate_graph|radius_graph_pbc\w*"),
    )
)


@lru_cache(maxsize=1 << 14)
def graph_builder(name: str) -> str | None:
    """What builds a graph under this name of an event: `radius_graph`, `pyg::neighbor_sample`, the name of a span; None
    for any other event."""
    if (frame := profiled(name)) is None:
        return name if _OPERATOR.fullmatch(name) or _SPAN.fullmatch(name) else None
    function = plain_function(frame.function)
    if _ANYWHERE.fullmatch(function):
        return None if owner_by_path(frame.file).owner in (TORCH, PYTHON, TRACEKIT) else function
    path = frame.file.replace("\\", "/")
    return next((function for file, builds in _OF_LIBRARIES if file.match(path) and builds.fullmatch(function)), None)
