"""What builds a graph is known by name: of operators, of functions with their files, of spans."""

import pytest

from tracekit.vocabulary.graph_building import graph_builder

SITE = "/opt/lib/python3.11/site-packages"


@pytest.mark.parametrize(
    ("name", "builder"),
    [
        ("pyg::neighbor_sample", "pyg::neighbor_sample"),
        ("pyg::hetero_neighbor_sample", "pyg::hetero_neighbor_sample"),
        ("pyg::radius", "pyg::radius"),
        ("torch_sparse::ego_k_hop_sample_adj", "torch_sparse::ego_k_hop_sample_adj"),
        ("torch_cluster::knn", "torch_cluster::knn"),
        ("Graph Building", "Graph Building"),
        ("neighbor_list", "neighbor_list"),
        ("model.py(12): radius_graph", "radius_graph"),
        (f"{SITE}/torch_cluster/radius.py(64): radius_graph", "radius_graph"),
        ("torch_geometric/utils/loop.py(585): add_remaining_self_loops", "add_remaining_self_loops"),
        ("torch_geometric/nn/conv/gcn_conv.py(44): gcn_norm", "gcn_norm"),
        ("torch_geometric/utils/loop.py(650): torch_dynamo_resume_in_add_self_loops_at_650", "add_self_loops"),
        ("torch_geometric/utils/_coalesce.py(70): coalesce", "coalesce"),
        ("torch_geometric/data/batch.py(80): from_data_list", "from_data_list"),
        ("torch_geometric/sampler/neighbor_sampler.py(399): sample_from_nodes", "sample_from_nodes"),
        ("torch_geometric\\loader\\graph_saint.py(90): _sample_nodes", "_sample_nodes"),
        (f"{SITE}/dgl/dataloading/neighbor_sampler.py(120): sample_blocks", "sample_blocks"),
        (f"{SITE}/ase/neighborlist.py(10): neighbor_list", "neighbor_list"),
        (f"{SITE}/fairchem/core/models/base.py(60): generate_graph", "generate_graph"),
    ],
)
def test_what_builds_a_graph(name, builder):
    assert graph_builder(name) == builder


@pytest.mark.parametrize(
    "name",
    [
        "aten::index_select",
        "aten::coalesce",
        "pyg::segment_matmul",
        "torch_sparse::spmm_sum",
        "torch_geometric/data/data.py(1019): edge_index",  # an attribute is read
        "torch_geometric/utils/sparse.py(115): is_torch_sparse_tensor",
        "torch_geometric/loader/utils.py(40): filter_data",  # fetches features
        "torch/_tensor.py(20): coalesce",
        "torch/utils/data/sampler.py(346): __iter__",
        "torch/utils/data/dataloader.py(493): _auto_collation",
        "torch/nn/parallel/distributed.py(2184): _default_broadcast_coalesced",
        "transformers/pipelines/base.py(85): no_collate_fn",
        "transformers/generation/utils.py(2000): _sample",  # of tokens
        "self_loops.py(51): step",
        "graph building blocks",
        "model.py(12): coalesce",  # of anything
    ],
)
def test_what_builds_none(name):
    assert graph_builder(name) is None
