"""The twin of gat_pubmed.py in DGL; `--param model=gcn|sage|gat|gin --param dataset=cora|citeseer|pubmed`.

DGL calls its own kernels, which Dynamo cannot trace into: expect many graphs. As there, `loops_ahead` adds the
self-loops that GCN and GAT need (and computes GCN's norm) once, before training.

The graph is the one that gat_pubmed generates, to the last edge. With `--param root=DIR` it is the real one, if it is
there as DGL unpacks it (`cora_v2_d697a464`); the run says which.
"""

import os
from pathlib import Path
from types import SimpleNamespace

import torch
from torch.nn.functional import cross_entropy, dropout, elu
from with_dgl import Layer, find_dgl, make_graph

PARAMS = {
    "model": "gat",
    "dataset": "pubmed",
    "hidden": 64,
    "heads": 8,
    "dropout": 0.6,
    "lr": 0.005,
    "weight_decay": 5e-4,
    "loops_ahead": False,
    "scale": 1.0,
    "root": os.environ.get("PLANETOID_ROOT", "data"),
}
VARIANTS = {
    "eager-ahead": {"compile": False, "loops_ahead": True},
    "compiled-ahead": {"loops_ahead": True},
}
STATISTICS = {  # nodes, pairs of neighbours, features, classes
    "cora": (2708, 5278, 1433, 7),
    "citeseer": (3327, 4552, 3703, 6),
    "pubmed": (19717, 44324, 500, 3),
}
NAMES = {"cora": "Cora", "citeseer": "CiteSeer", "pubmed": "PubMed"}
Data = SimpleNamespace


class Net(torch.nn.Module):
    def __init__(self, ctx, features, classes):
        super().__init__()
        self.dropout = ctx.dropout
        self.first = Layer(ctx, features, ctx.hidden, ctx.heads, ctx.dropout)
        self.second = Layer(ctx, ctx.hidden, classes, 1, ctx.dropout)

    def forward(self, graph, x):
        x = elu(self.first(graph, dropout(x, self.dropout, self.training)))
        return self.second(graph, dropout(x, self.dropout, self.training))


def setup(ctx):
    data, classes = load(ctx)
    train, test = (mask.nonzero()[:, 0].to(ctx.device) for mask in (data.train_mask, data.test_mask))
    graph = make_graph(ctx, data.edge_index, len(data.y))
    x, y = data.x.to(ctx.device), data.y.to(ctx.device)
    model = Net(ctx, x.size(1), classes).to(ctx.device)
    compiled = ctx.compile(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=ctx.lr, weight_decay=ctx.weight_decay)

    def step():
        model.train()
        optimizer.zero_grad()
        loss = cross_entropy(compiled(graph, x)[train], y[train])
        loss.backward()
        optimizer.step()
        return loss.detach()

    @torch.no_grad()
    def infer():
        model.eval()
        return compiled(graph, x)

    def evaluate():
        right = infer().argmax(-1) == y
        return {"test accuracy": float(right[test].float().mean())}

    def graph_size():
        return {"nodes": graph.num_nodes(), "edges": graph.num_edges()}

    return SimpleNamespace(step=step, infer=infer, evaluate=evaluate, graph_size=graph_size)


def load(ctx):
    nodes, pairs, features, classes = STATISTICS[ctx.dataset]
    if ctx.scale == 1 and [*Path(ctx.root).glob(f"{ctx.dataset}_v2_*")]:
        ctx.note(f"real {NAMES[ctx.dataset]} from {ctx.root}")
        return read(ctx), classes
    ctx.note(f"generated graph with the statistics of {NAMES[ctx.dataset]} at scale {ctx.scale:g}")
    return generate(max(int(nodes * ctx.scale), 200 * classes), int(pairs * ctx.scale), features, classes), classes


def read(ctx):
    datasets = find_dgl().data
    made = {"cora": "CoraGraphDataset", "citeseer": "CiteseerGraphDataset", "pubmed": "PubmedGraphDataset"}
    graph = getattr(datasets, made[ctx.dataset])(raw_dir=ctx.root, verbose=False)[0]
    return Data(x=graph.ndata["feat"], y=graph.ndata["label"], edge_index=graph.edges(), **graph.ndata)


def generate(nodes, pairs, features, classes):
    """A graph with long-tailed degrees, neighbours mostly of the same class, and features that only hint at the
    class."""
    draw = torch.Generator().manual_seed(0)
    y = (classes * torch.rand(nodes, generator=draw) ** 1.2).long().sort().values  # large and small classes
    size = y.bincount(minlength=classes)
    first = size.cumsum(0) - size
    source = torch.randint(nodes, (pairs,), generator=draw)
    stranger = torch.randint(nodes, (pairs,), generator=draw)
    label = y[torch.where(torch.rand(pairs, generator=draw) < 0.7, source, stranger)]
    target = first[label] + (size[label] * torch.rand(pairs, generator=draw) ** 3).long()  # popular nodes come first
    x = torch.randn(nodes, features, generator=draw) / features**0.5
    x += torch.randn(classes, features, generator=draw)[y] * 2.5 / features
    order = torch.randperm(nodes, generator=draw)
    train = torch.cat([order[y[order] == label][:20] for label in range(classes)])
    test = order[~torch.isin(order, train)][: min(1000, nodes // 2)]
    masks = [torch.zeros(nodes, dtype=torch.bool).index_fill(0, part, True) for part in (train, test)]
    pairs = torch.stack([source, target])
    edges = torch.cat([pairs, pairs.flip(0)], 1)
    return Data(x=x, y=y, edge_index=edges, train_mask=masks[0], test_mask=masks[1])


if __name__ == "__main__":
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    ctx = SimpleNamespace(**PARAMS, device=device, seed=0, compile=lambda module, **_: module, note=print)
    torch.manual_seed(ctx.seed)
    training = setup(ctx)
    for epoch in range(1, 41):
        loss = training.step()
        if epoch % 20 == 0:
            print(f"epoch {epoch:3d}  loss {loss:.4f}  test accuracy {training.evaluate()['test accuracy']:.3f}")
