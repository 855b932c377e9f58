"""The twin of gin_arxiv.py in DGL: three layers, full batch; `--param model=gcn|sage|gat|gin`.

The graph is the one that gin_arxiv generates, to the last edge. With `--param scale=1` it is OGB's, if that is in
`--param root=DIR`; the run says which.
"""

import os
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import torch
from torch.nn.functional import cross_entropy, dropout
from with_dgl import Layer, find_dgl, make_graph

PARAMS = {
    "model": "gin",
    "hidden": 64,
    "layers": 3,
    "heads": 4,
    "dropout": 0.5,
    "lr": 0.005,
    "loops_ahead": True,
    "scale": 0.1,
    "root": os.environ.get("OGB_ROOT", "data"),
}
NODES, PAIRS, FEATURES, CLASSES = 169343, 1166243, 128, 40
Data = SimpleNamespace


class Net(torch.nn.Module):
    def __init__(self, ctx):
        super().__init__()
        self.dropout = ctx.dropout
        sizes = [FEATURES, *[ctx.hidden] * (ctx.layers - 1), CLASSES]
        self.layers = torch.nn.ModuleList(Layer(ctx, *ends, ctx.heads) for ends in pairwise(sizes))
        self.norms = torch.nn.ModuleList(torch.nn.BatchNorm1d(size) for size in sizes[1:-1])

    def forward(self, graph, x):
        for layer, norm in zip(self.layers, self.norms, strict=False):  # the last layer has none
            x = dropout(norm(layer(graph, x)).relu(), self.dropout, self.training)
        return self.layers[-1](graph, x)


def setup(ctx):
    dgl = find_dgl()
    data = load(ctx)
    x, y, train, test = (part.to(ctx.device) for part in (data.x, data.y, data.train, data.test))
    both_ways = dgl.to_bidirected(dgl.graph((data.edge_index[0], data.edge_index[1]), num_nodes=len(y)))
    graph = make_graph(ctx, both_ways.edges(), len(y))
    model = Net(ctx).to(ctx.device)
    compiled = ctx.compile(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=ctx.lr)

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
        return {"test accuracy": float((infer().argmax(-1) == y)[test].float().mean())}

    def graph_size():
        return {"nodes": graph.num_nodes(), "edges": graph.num_edges()}

    return SimpleNamespace(step=step, infer=infer, evaluate=evaluate, graph_size=graph_size)


def load(ctx):
    folder = Path(ctx.root, "arxiv")
    if ctx.scale == 1 and folder.exists():
        ctx.note(f"real ogbn-arxiv from {ctx.root}")
        return read(folder)
    ctx.note(f"generated graph with the statistics of ogbn-arxiv at scale {ctx.scale:g}")
    return generate(max(int(NODES * ctx.scale), 10 * CLASSES), int(PAIRS * ctx.scale))


def read(folder):
    """Read OGB's own files, as they are in its zip."""
    import pandas

    def table(name, kind):
        return torch.tensor(pandas.read_csv(folder / name, header=None).to_numpy(kind))

    train, test = (table(f"split/time/{part}.csv.gz", "int64")[:, 0] for part in ("train", "test"))
    x, y = table("raw/node-feat.csv.gz", "float32"), table("raw/node-label.csv.gz", "int64")[:, 0]
    return Data(x=x, y=y, edge_index=table("raw/edge.csv.gz", "int64").T.contiguous(), train=train, test=test)


def generate(nodes, pairs):
    """A graph with long-tailed degrees, neighbours mostly of the same class, and features that only hint at the
    class."""
    draw = torch.Generator().manual_seed(0)
    y = (CLASSES * torch.rand(nodes, generator=draw) ** 1.5).long().sort().values  # large and small classes
    size = y.bincount(minlength=CLASSES)
    first = size.cumsum(0) - size
    source = torch.randint(nodes, (pairs,), generator=draw)
    stranger = torch.randint(nodes, (pairs,), generator=draw)
    label = y[torch.where(torch.rand(pairs, generator=draw) < 0.6, source, stranger)]
    target = first[label] + (size[label] * torch.rand(pairs, generator=draw) ** 3).long()  # popular nodes come first
    x = torch.randn(nodes, FEATURES, generator=draw)
    x += torch.randn(CLASSES, FEATURES, generator=draw)[y] * 2 / FEATURES**0.5
    order = torch.randperm(nodes, generator=draw)
    train, test = order[: int(0.54 * nodes)], order[-int(0.29 * nodes) :]
    return Data(x=x, y=y, edge_index=torch.stack([source, target]), train=train, test=test)


if __name__ == "__main__":
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    ctx = SimpleNamespace(**PARAMS, device=device, seed=0, compile=lambda module, **_: module, note=print)
    torch.manual_seed(ctx.seed)
    training = setup(ctx)
    for epoch in range(1, 51):
        loss = training.step()
        if epoch % 10 == 0:
            print(f"epoch {epoch:3d}  loss {loss:.4f}  test accuracy {training.evaluate()['test accuracy']:.3f}")
