"""The twin of sage_products.py in DGL, in sampled batches; `--param model=gcn|sage|gat|gin`, `dataset=…`.

DGL samples a bipartite graph (a block) for each layer, with its own sampler. GCN and GAT get their self-loops (and
GCN's norm) before training.

The graph is the one that sage_products generates, to the last edge. With `--param scale=1` it is OGB's, if that is
in `--param root=DIR`; the run says which.
"""

import os
from itertools import cycle, pairwise
from pathlib import Path
from types import SimpleNamespace

import torch
from torch.nn.functional import cross_entropy, dropout
from with_dgl import Layer, find_dgl, make_graph

PARAMS = {
    "model": "sage",
    "dataset": "products",
    "hidden": 64,
    "heads": 1,
    "fanout": [10, 5, 5],
    "batch": 512,
    "workers": 0,
    "dropout": 0.5,
    "lr": 0.003,
    "scale": 0.01,
    "root": os.environ.get("OGB_ROOT", "data"),
}
VARIANTS = {"dynamic": {"dynamic": True}}
STATISTICS = {  # nodes, pairs of neighbours, features, classes, share to train on
    "products": (2449029, 61859140, 100, 47, 0.08),
    "reddit": (232965, 57307946, 602, 41, 0.66),
    "arxiv": (169343, 1166243, 128, 40, 0.54),
}
Data = SimpleNamespace


class Net(torch.nn.Module):
    def __init__(self, ctx, features, classes):
        super().__init__()
        self.dropout = ctx.dropout
        sizes = [features, *[ctx.hidden] * (len(ctx.fanout) - 1), classes]
        self.layers = torch.nn.ModuleList(Layer(ctx, *ends, ctx.heads) for ends in pairwise(sizes))

    def forward(self, blocks, x):
        for layer, block in zip(self.layers[:-1], blocks[:-1], strict=True):
            x = dropout(layer(block, x).relu(), self.dropout, self.training)
        return self.layers[-1](blocks[-1], x)


def setup(ctx):
    dgl = find_dgl()
    ctx.loops_ahead = True  # a block only contains the neighbours of its nodes
    dgl.seed(ctx.seed)  # its sampler has its own generator
    data, classes = load(ctx)
    ctx.note("neighbours sampled by DGL")
    graph = make_graph(ctx, data.edge_index, len(data.y), device="cpu")
    norm = graph.edata.get("norm")
    batches = make_loader(ctx, graph, data.train, shuffle=True)
    held_out = make_loader(ctx, graph, data.test[: 4 * ctx.batch], shuffle=False)
    model = Net(ctx, data.x.size(1), classes).to(ctx.device)
    compiled = ctx.compile(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=ctx.lr)
    to_infer = cycle(held_out)  # sampled once, so that only the model is timed

    def predict(batch):
        nodes, seeds, blocks = batch
        blocks = [block.to(ctx.device) for block in blocks]
        if norm is not None:
            for block in blocks:
                block.edata["norm"] = norm[block.edata[dgl.EID].cpu()].to(ctx.device)
        return compiled(blocks, data.x[nodes].to(ctx.device)), data.y[seeds].to(ctx.device)

    def step(batch):
        model.train()
        optimizer.zero_grad()
        loss = cross_entropy(*predict(batch))
        loss.backward()
        optimizer.step()
        return loss.detach()

    @torch.no_grad()
    def infer(batch=None):
        model.eval()
        return predict(next(to_infer) if batch is None else batch)

    def evaluate():
        right = [out.argmax(-1) == y for out, y in map(infer, held_out)]
        return {"test accuracy": float(torch.cat(right).float().mean())}

    def graph_size(batch):
        """The number of nodes whose features are read, and of the edges of all layers."""
        nodes, _, blocks = batch
        return {"nodes": len(nodes), "edges": sum(block.num_edges() for block in blocks)}

    return SimpleNamespace(step=step, batches=batches, infer=infer, evaluate=evaluate, graph_size=graph_size)


def make_loader(ctx, graph, seeds, shuffle):
    loading = find_dgl().dataloading
    sampler = loading.NeighborSampler(ctx.fanout[::-1])  # DGL counts from the first layer, PyG from the last
    more = {"batch_size": ctx.batch, "shuffle": shuffle, "num_workers": ctx.workers}
    return loading.DataLoader(graph, seeds, sampler, **more)


def load(ctx):
    nodes, pairs, features, classes, share = STATISTICS[ctx.dataset]
    folder = Path(ctx.root, ctx.dataset)
    if ctx.scale == 1 and ctx.dataset != "reddit" and folder.exists():
        ctx.note(f"real {ctx.dataset} from {ctx.root}")
        return read_ogb(folder), classes
    ctx.note(f"generated graph with the statistics of {ctx.dataset} at scale {ctx.scale:g}")
    return generate(
        max(int(nodes * ctx.scale), 10 * classes), int(pairs * ctx.scale), features, classes, share
    ), classes


def read_ogb(folder):
    """Read OGB's own files, as they are in its zip."""
    import pandas

    def table(name, kind):
        return torch.tensor(pandas.read_csv(folder / name, header=None).to_numpy(kind))

    split = next((folder / "split").iterdir()).relative_to(folder)
    train, test = (table(split / f"{part}.csv.gz", "int64")[:, 0] for part in ("train", "test"))
    x, y = table("raw/node-feat.csv.gz", "float32"), table("raw/node-label.csv.gz", "int64")[:, 0]
    edges = table("raw/edge.csv.gz", "int64").T
    edges = torch.cat([edges, edges.flip(0)], 1).unique(dim=1)
    return Data(x=x, y=y, edge_index=edges, train=train, test=test)


def generate(nodes, pairs, features, classes, share):
    """A graph with long-tailed degrees, neighbours mostly of the same class, and features that only hint at the
    class."""
    draw = torch.Generator().manual_seed(0)
    y = (classes * torch.rand(nodes, generator=draw) ** 1.5).long().sort().values  # large and small classes
    size = y.bincount(minlength=classes)
    first = size.cumsum(0) - size
    source = torch.randint(nodes, (pairs,), generator=draw)
    stranger = torch.randint(nodes, (pairs,), generator=draw)
    label = y[torch.where(torch.rand(pairs, generator=draw) < 0.5, source, stranger)]
    nth = (size[label] * torch.rand(pairs, generator=draw) ** 3).long()  # popular nodes come first
    target = first[label] + torch.minimum(nth, size[label] - 1)
    x = torch.randn(nodes, features, generator=draw)
    x += torch.randn(classes, features, generator=draw)[y] * 2.5 / features**0.5
    order = torch.randperm(nodes, generator=draw)
    train, test = order[: int(share * nodes)], order[-int(0.2 * nodes) :]
    both = torch.cat([torch.stack([source, target]), torch.stack([target, source])], 1)
    return Data(x=x, y=y, edge_index=both, train=train, test=test)


if __name__ == "__main__":
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    ctx = SimpleNamespace(**PARAMS, device=device, seed=0, compile=lambda module, **_: module, note=print)
    torch.manual_seed(ctx.seed)
    training = setup(ctx)
    for epoch in range(1, 11):
        losses = [training.step(batch) for batch in training.batches]
        accuracy = training.evaluate()["test accuracy"]
        print(f"epoch {epoch:2d}  loss {torch.stack(losses).mean():.4f}  test accuracy {accuracy:.3f}")
