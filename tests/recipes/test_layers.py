"""What the compiler makes of PyG's layers, in the smallest models that show it.

The counts are graphs/recompilations/breaks, as seen with torch 2.13 and PyG 2.8.1; other versions may differ. They
depend on what changes from step to step:

- `same`: nothing, every step sees one and the same graph;
- `redrawn`: as many nodes and edges, but other edges, hence other numbers of self-loops and of edges in a relation;
- `varying`: every size; `dynamic` and `static` are that with dynamic=True and dynamic=False.
"""

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import (
    MLP,
    DistMult,
    GATConv,
    GCNConv,
    GINConv,
    GraphSAGE,
    HeteroConv,
    HGTConv,
    RGCNConv,
    SAGEConv,
    global_add_pool,
    to_hetero,
)
from torch_geometric.transforms import GCNNorm

from tests.recipes.conftest import slow
from tests.recipes.training import BACKEND, compiled_from_nothing, counts_of

FEATURES, HIDDEN, CLASSES, RELATIONS = 8, 8, 4, 3
EDGE_TYPES = [("author", "writes", "paper"), ("paper", "cites", "paper"), ("paper", "rev_writes", "author")]
METADATA = (["author", "paper"], EDGE_TYPES)
STEPS, STEPS_TO_THE_LIMIT = 4, 12


class Two(torch.nn.Module):
    """Two layers, one after the other: no dropout, and no loop that Dynamo would leave to Python."""

    def __init__(self, first, second):
        super().__init__()
        self.first, self.second = first, second

    def forward(self, x, *edges):
        return self.second(self.first(x, *edges).relu(), *edges)


class Headed(torch.nn.Module):
    """One heterogeneous layer, and a head for papers."""

    def __init__(self, layer):
        super().__init__()
        self.layer, self.head = layer, torch.nn.Linear(HIDDEN, CLASSES)

    def forward(self, x_dict, edge_index_dict):
        return self.head(self.layer(x_dict, edge_index_dict)["paper"])


class Pooled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers, self.head = gin(), torch.nn.Linear(CLASSES, CLASSES)

    def forward(self, x, edge_index, batch, graphs=None):
        return self.head(global_add_pool(self.layers(x, edge_index), batch, graphs))


class Linked(torch.nn.Module):
    """Scores pairs of nodes, and negative pairs drawn outside of it."""

    def __init__(self):
        super().__init__()
        self.layers = two(SAGEConv)

    def forward(self, x, edge_index, pairs, others):
        x = self.layers(x, edge_index)
        return torch.cat([(x[source] * x[target]).sum(-1) for source, target in (pairs, others)])


class Ranked(torch.nn.Module):
    """A knowledge graph embedding's loss, which draws its negatives itself."""

    def __init__(self):
        super().__init__()
        self.entities = DistMult(1000, RELATIONS, HIDDEN)

    def forward(self, head, relation, tail):
        return self.entities.loss(head, relation, tail)


def two(layer, *sizes, **options):
    return Two(layer(FEATURES, HIDDEN, *sizes, **options), layer(HIDDEN, CLASSES, *sizes, **options))


def gin():
    return Two(GINConv(MLP([FEATURES, HIDDEN, HIDDEN])), GINConv(MLP([HIDDEN, HIDDEN, CLASSES])))


def hetero_conv():
    return HeteroConv({edge: SAGEConv(FEATURES, HIDDEN) for edge in EDGE_TYPES})


def graph(nodes, edges):
    """Random edges, a few of them self-loops."""
    return torch.randn(nodes, FEATURES), torch.randint(nodes, (2, edges))


def normed(nodes, edges):
    x, edge_index = graph(nodes, edges)
    data = GCNNorm()(Data(x=x, edge_index=edge_index))
    return data.x, data.edge_index, data.edge_weight


def typed(nodes, edges):
    return *graph(nodes, edges), torch.randint(RELATIONS, (edges,))


def hetero(nodes, edges):
    count = {"author": nodes, "paper": nodes + nodes // 4}
    x_dict = {name: torch.randn(nodes, FEATURES) for name, nodes in count.items()}
    ends = {edge: [torch.randint(count[end], (edges,)) for end in (edge[0], edge[2])] for edge in EDGE_TYPES}
    return x_dict, {edge: torch.stack(pair) for edge, pair in ends.items()}


def triples(nodes, edges):
    return torch.randint(nodes, (edges,)), torch.randint(RELATIONS, (edges,)), torch.randint(nodes, (edges,))


def pairs(nodes, edges):
    return *graph(nodes, edges), torch.randint(nodes, (2, nodes)), torch.randint(nodes, (2, nodes))


def molecules(nodes, edges):
    """Every ten nodes are one molecule."""
    return *graph(nodes, edges), torch.arange(nodes) // 10


def six_molecules(nodes, edges):
    return *graph(nodes, edges), torch.arange(nodes) * 6 // nodes


def sized_molecules(nodes, edges):
    return *molecules(nodes, edges), nodes // 10


# What is trained on which data; then the counts by what changes from step to step.
CASES = {
    "gcn": (
        lambda: two(GCNConv),
        graph,
        {"same": "6/2/6", "redrawn": "10/6/6", "varying": "14/12/12", "dynamic": "8/2/6"},
    ),
    "gcn, norm ahead": (
        lambda: two(GCNConv, normalize=False),
        normed,
        {"same": "1/0/0", "redrawn": "2/1/0", "varying": "2/1/0", "dynamic": "1/0/0"},  # self-loops add edges
    ),
    "sage": (
        lambda: two(SAGEConv),
        graph,
        {"redrawn": "1/0/0", "varying": "2/1/0", "dynamic": "1/0/0", "static": "8/8/0"},
    ),
    "gin": (gin, graph, {"redrawn": "1/0/0", "varying": "2/1/0", "dynamic": "1/0/0", "static": "8/8/0"}),
    "gat": (
        lambda: two(GATConv),
        graph,
        {"same": "6/2/5", "redrawn": "8/4/5", "varying": "12/9/10", "dynamic": "6/2/5"},
    ),
    "gat, loops ahead": (
        lambda: two(GATConv, add_self_loops=False),
        graph,
        {"redrawn": "1/0/0", "varying": "2/1/0", "dynamic": "1/0/0", "static": "8/8/0"},
    ),
    "rgcn": (
        lambda: two(RGCNConv, RELATIONS),
        typed,
        {"same": "8/5/9", "redrawn": "9/8/12", "varying": "14/15/17", "dynamic": "6/3/8"},
    ),
    "to_hetero": (
        lambda: Headed(to_hetero(GraphSAGE(FEATURES, HIDDEN, 2), METADATA)),
        hetero,
        {"redrawn": "1/0/0", "varying": "2/1/0", "dynamic": "1/0/0"},
    ),
    "hetero_conv": (
        lambda: Headed(hetero_conv()),
        hetero,
        {"redrawn": "1/0/0", "varying": "2/1/0", "dynamic": "1/0/0"},
    ),
    "hgt": (
        lambda: Headed(HGTConv(FEATURES, HIDDEN, METADATA)),
        hetero,
        {"same": "7/0/5", "redrawn": "7/0/5", "varying": "14/8/10", "dynamic": "8/0/5"},
    ),
    "kge": (Ranked, triples, {"redrawn": "1/0/0", "varying": "2/1/0", "dynamic": "1/0/0"}),
    "links": (Linked, pairs, {"redrawn": "1/0/0", "varying": "2/1/0", "dynamic": "1/0/0"}),
    "pooling": (Pooled, molecules, {"same": "4/0/3", "redrawn": "4/0/3", "varying": "8/5/6", "dynamic": "4/0/3"}),
    "pooling, as many graphs": (Pooled, six_molecules, {"varying": "7/4/6"}),
    "pooling, sized": (Pooled, sized_molecules, {"redrawn": "1/0/0", "varying": "2/1/0", "dynamic": "1/0/0"}),
}
DYNAMIC = {"dynamic": True, "static": False}


# Too slow for CI, or like one that is there.
MORE = ("gin", "gat", "gat, loops ahead", "rgcn", "to_hetero", "hetero_conv", "hgt", "pooling, sized")


ALIKE = {("gcn", "same"), ("gcn", "dynamic"), ("pooling", "same"), ("pooling", "dynamic")}


@pytest.mark.parametrize(
    ("name", "change"),
    [
        pytest.param(name, change, marks=[slow] if name in MORE or (name, change) in ALIKE else [])
        for name, (_, _, expected) in CASES.items()
        for change in expected
    ],
)
def test_counts(name, change):
    make, draw, expected = CASES[name]
    assert counted(make(), batches(draw, change), DYNAMIC.get(change)) == expected[change]


def counted(model, batches, dynamic=None):
    """One training step with each batch, and what was compiled for it."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with compiled_from_nothing() as recorder:
        compiled = torch.compile(model, backend=BACKEND, dynamic=dynamic)
        for batch in batches:
            optimizer.zero_grad()
            compiled(*batch).square().mean().backward()
            optimizer.step()
    gave_up = [hit.setting for hit in recorder.limits]
    assert gave_up == (["recompile_limit"] if dynamic is False else [])
    return counts_of(recorder)


def batches(draw, change):
    """Made anew for each count: AOTAutograd marks sizes as dynamic on the tensors themselves, which no reset undoes."""
    for step in range(STEPS_TO_THE_LIMIT if change == "static" else STEPS):
        torch.manual_seed(0 if change == "same" else step)
        grown = 0 if change in ("same", "redrawn") else step
        yield draw(60 + 10 * grown, 300 + 31 * grown)
