"""A three-layer GraphSAGE on ogbn-products, in sampled batches; `--param model=gcn|sage|gat|gin`, `dataset=…`.

The graph is generated with the data set's statistics, at a hundredth of its size: 0.6 M of products' 62 M pairs. With
`--param scale=1` it is the real one if that is in `--param root=DIR`: OGB's unpacked zip, or PyG's `reddit` folder
(neither is downloaded automatically, because they have gigabytes).

Every batch has its own number of nodes and edges. torch.compile compiles once for the first batch, and a second time
for any size; `dynamic=true` does the latter at once; `dynamic=false` compiles again for each batch, until Dynamo gives
up. `padded` fills every batch, in training and inference, up to the largest possible size: one graph for fixed sizes,
and the same losses. GCN and GAT get their self-loops (and GCN's norm) before training; `loops_ahead=false` leaves that
to their layers, which breaks the graph. pyg-lib samples the neighbours if it is installed, otherwise a few lines of
torch below; the run says which.
"""

import os
from itertools import cycle, pairwise
from pathlib import Path
from types import SimpleNamespace

import torch
from torch.nn.functional import cross_entropy, dropout
from torch_geometric.data import Data
from torch_geometric.loader import NeighborLoader, NodeLoader
from torch_geometric.nn import MLP, GATConv, GCNConv, GINConv, SAGEConv
from torch_geometric.sampler import BaseSampler, SamplerOutput
from torch_geometric.transforms import AddSelfLoops, Compose, GCNNorm, Pad
from torch_geometric.typing import WITH_PYG_LIB
from torch_geometric.utils import to_undirected

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
    "amp": False,  # bfloat16
    "padded": False,
    "loops_ahead": True,
    "scale": 0.01,
    "root": os.environ.get("OGB_ROOT", "data"),
}
VARIANTS = {"dynamic": {"dynamic": True}, "padded": {"dynamic": False, "padded": True}}
STATISTICS = {  # nodes, pairs of neighbours, features, classes, share to train on
    "products": (2449029, 61859140, 100, 47, 0.08),
    "reddit": (232965, 57307946, 602, 41, 0.66),
    "arxiv": (169343, 1166243, 128, 40, 0.54),
}


class Net(torch.nn.Module):
    def __init__(self, ctx, features, classes):
        super().__init__()
        self.dropout, self.weighted = ctx.dropout, ctx.model == "gcn"
        sizes = [features, *[ctx.hidden] * (len(ctx.fanout) - 1), classes]
        self.layers = torch.nn.ModuleList(make_layer(ctx, *ends) for ends in pairwise(sizes))

    def forward(self, x, edge_index, edge_weight=None):
        edges = (edge_index, edge_weight) if self.weighted else (edge_index,)
        for layer in self.layers[:-1]:
            x = dropout(layer(x, *edges).relu(), self.dropout, self.training)
        return self.layers[-1](x, *edges)


def make_layer(ctx, inputs, outputs):
    if ctx.model == "gcn":
        return GCNConv(inputs, outputs, normalize=not ctx.loops_ahead)
    if ctx.model == "gat":
        return GATConv(inputs, outputs // ctx.heads, ctx.heads, add_self_loops=not ctx.loops_ahead)
    if ctx.model == "gin":
        return GINConv(MLP([inputs, ctx.hidden, outputs]), train_eps=True)
    return SAGEConv(inputs, outputs)


class Sampler(BaseSampler):
    """Samples neighbours hop by hop in plain torch: all of them if there are few, else some (possibly twice)."""

    def __init__(self, data, fanout):
        self.fanout = fanout
        self.edge = data.edge_index[1].argsort()
        self.source, self.target = data.edge_index[:, self.edge]
        self.degree = self.target.bincount(minlength=data.num_nodes)
        self.first = self.degree.cumsum(0) - self.degree
        self.position = torch.full((data.num_nodes,), -1)  # of a node in the batch

    def sample_from_nodes(self, seeds):
        nodes = frontier = seeds.node
        self.position[nodes] = torch.arange(len(nodes))
        sampled = []
        for count in self.fanout:
            degree, nth = self.degree[frontier, None], torch.arange(count)
            nth = torch.where(degree > count, (torch.rand(len(frontier), count) * degree).long(), nth)
            sampled.append((self.first[frontier, None] + nth)[nth < degree])
            neighbours = self.source[sampled[-1]]
            frontier = neighbours[self.position[neighbours] < 0].unique()
            self.position[frontier] = torch.arange(len(nodes), len(nodes) + len(frontier))
            nodes = torch.cat([nodes, frontier])
        at = torch.cat(sampled)
        row, col = self.position[self.source[at]], self.position[self.target[at]]
        self.position[nodes] = -1
        return SamplerOutput(nodes, row, col, self.edge[at], metadata=(seeds.input_id, seeds.time))

    sample_from_edges = None  # required by the base class; only link loaders call it


def make_loader(ctx, data, seeds, shuffle):
    more = {"batch_size": ctx.batch, "shuffle": shuffle, "num_workers": ctx.workers}
    more["pin_memory"] = ctx.device.type == "cuda"  # only copies from pinned memory need no wait
    if ctx.padded:
        more["transform"] = Pad(*most(data.num_nodes, ctx.batch, ctx.fanout))
    if WITH_PYG_LIB:
        return NeighborLoader(data, ctx.fanout, seeds, **more)
    return NodeLoader(data, Sampler(data, ctx.fanout), seeds, **more)


def most(nodes, seeds, fanout):
    """The largest numbers of nodes and edges in a batch, and the dummy node to which surplus edges lead."""
    edges, frontier, reached = 0, seeds, seeds
    for count in fanout:
        edges += frontier * count
        frontier = min(frontier * count, nodes)
        reached += frontier
    return min(reached, nodes) + 1, edges


def setup(ctx):
    data, classes = load(ctx)
    train, test = data.train, data.test
    del data.train, data.test  # otherwise they would be part of every batch
    ctx.note(f"neighbours sampled by {'pyg-lib' if WITH_PYG_LIB else 'plain torch'}")
    batches = make_loader(ctx, data, train, shuffle=True)
    held_out = make_loader(ctx, data, test[: 4 * ctx.batch], shuffle=False)
    model = Net(ctx, data.num_features, classes).to(ctx.device)
    compiled = ctx.compile(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=ctx.lr)
    to_infer = cycle(held_out)  # sampled once, so that only the model is timed

    def step(batch):
        batch = batch.to(ctx.device, non_blocking=True)
        model.train()
        optimizer.zero_grad()
        with torch.autocast(batch.x.device.type, torch.bfloat16, enabled=ctx.amp):
            out = compiled(batch.x, batch.edge_index, batch.edge_weight)[: batch.batch_size]
            loss = cross_entropy(out.float(), batch.y[: batch.batch_size])
        loss.backward()
        optimizer.step()
        return loss.detach()

    @torch.no_grad()
    def infer(batch=None):
        batch = next(to_infer).to(ctx.device) if batch is None else batch
        model.eval()
        return compiled(batch.x, batch.edge_index, batch.edge_weight)[: batch.batch_size]

    def evaluate():
        moved = (batch.to(ctx.device) for batch in held_out)
        right = [infer(batch).argmax(-1) == batch.y[: batch.batch_size] for batch in moved]
        return {"test accuracy": float(torch.cat(right).float().mean())}

    return SimpleNamespace(step=step, batches=batches, infer=infer, evaluate=evaluate)


def load(ctx):
    ahead = {"gcn": [GCNNorm()], "gat": [AddSelfLoops()]}.get(ctx.model, []) if ctx.loops_ahead else []
    nodes, pairs, features, classes, share = STATISTICS[ctx.dataset]
    folder = Path(ctx.root, ctx.dataset)
    if ctx.scale == 1 and folder.exists():
        ctx.note(f"real {ctx.dataset} from {ctx.root}")
        data = read_reddit(folder) if ctx.dataset == "reddit" else read_ogb(folder)
    else:
        ctx.note(f"generated graph with the statistics of {ctx.dataset} at scale {ctx.scale:g}")
        data = generate(max(int(nodes * ctx.scale), 10 * classes), int(pairs * ctx.scale), features, classes, share)
    return Compose(ahead)(data), classes


def read_reddit(folder):
    from torch_geometric.datasets import Reddit

    data = Reddit(str(folder))[0]
    train, test = (mask.nonzero()[:, 0] for mask in (data.train_mask, data.test_mask))
    return Data(x=data.x, y=data.y, edge_index=data.edge_index, train=train, test=test)


def read_ogb(folder):
    """Read OGB's own files, as they are in its zip."""
    import pandas

    def table(name, kind):
        return torch.tensor(pandas.read_csv(folder / name, header=None).to_numpy(kind))

    split = next((folder / "split").iterdir()).relative_to(folder)
    train, test = (table(split / f"{part}.csv.gz", "int64")[:, 0] for part in ("train", "test"))
    x, y = table("raw/node-feat.csv.gz", "float32"), table("raw/node-label.csv.gz", "int64")[:, 0]
    edges = to_undirected(table("raw/edge.csv.gz", "int64").T.contiguous())
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
