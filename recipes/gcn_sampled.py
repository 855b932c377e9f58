"""A GCN on Cora four ways: full batch, sampled, sampled in mixed precision, compiled.

    tracekit capture recipes/gcn_sampled.py --variants baseline,sampled,sampled-amp,baseline-compiled

Mixed precision is float16 with a gradient scaler (`--param amp=bf16` needs none): on a CPU it computes the same and
gains nothing, because its speed comes from tensor cores, and it saves memory only on a GPU. Cora has 140 training
nodes: with the default batch of 128 an epoch is two steps, with `--param batch=140` one, as with the whole graph.
Cora is read from `--param root=DIR` (default: $CORA_ROOT, else `data`); without it, a graph of the same statistics is
generated, and the run says so. pyg-lib samples if it is installed, otherwise a few lines of torch below.
"""

import os
from types import SimpleNamespace

import torch
from torch.nn.functional import cross_entropy
from torch_geometric.data import Data
from torch_geometric.datasets import Planetoid
from torch_geometric.loader import NeighborLoader, NodeLoader
from torch_geometric.nn import GCNConv
from torch_geometric.sampler import BaseSampler, SamplerOutput
from torch_geometric.transforms import GCNNorm
from torch_geometric.typing import WITH_PYG_LIB

PARAMS = {
    "sampled": True,
    "amp": "fp32",  # or fp16, bf16
    "norm_ahead": False,
    "batch": 128,
    "fanout": [10, 5],
    "hidden": 16,
    "lr": 0.01,
    "weight_decay": 5e-4,
    "root": os.environ.get("CORA_ROOT", "data"),
}
VARIANTS = {
    "baseline": {"compile": False, "sampled": False},
    "sampled": {"compile": False},
    "sampled-amp": {"compile": False, "amp": "fp16"},
    "baseline-compiled": {"sampled": False},
    "sampled-amp-compiled": {"amp": "fp16", "norm_ahead": True, "dynamic": True},
}
TYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


class GCN(torch.nn.Module):
    def __init__(self, ctx, features, classes):
        super().__init__()
        self.first = GCNConv(features, ctx.hidden, normalize=not ctx.norm_ahead)
        self.second = GCNConv(ctx.hidden, classes, normalize=not ctx.norm_ahead)

    def forward(self, x, edge_index, edge_weight=None):
        return self.second(self.first(x, edge_index, edge_weight).relu(), edge_index, edge_weight)


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


def setup(ctx):
    data, classes = load(ctx)
    whole = data.clone().to(ctx.device)  # `to` moves the data itself, but the sampler needs it on the CPU
    train = whole.train_mask.nonzero()[:, 0]
    model = GCN(ctx, data.num_features, classes).to(ctx.device)
    compiled = ctx.compile(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=ctx.lr, weight_decay=ctx.weight_decay)
    kind = whole.x.device.type
    scaler = torch.amp.GradScaler(kind, enabled=ctx.amp == "fp16")  # keeps small gradients above the smallest float16

    def step(batch):
        batch = batch.to(ctx.device, non_blocking=True)
        seeds = slice(batch.batch_size) if ctx.sampled else train
        model.train()
        optimizer.zero_grad()
        with torch.autocast(kind, TYPES[ctx.amp], enabled=ctx.amp != "fp32"):
            out = compiled(batch.x, batch.edge_index, batch.edge_weight)
            loss = cross_entropy(out[seeds].float(), batch.y[seeds])
        scaler.scale(loss).backward()
        scaler.step(optimizer)  # skipped if a gradient overflowed, which takes a wait for the device in each step
        scaler.update()
        return loss.detach()

    @torch.no_grad()
    def infer():
        model.eval()
        return compiled(whole.x, whole.edge_index, whole.edge_weight)

    def evaluate():
        right = infer().argmax(-1) == whole.y
        return {"test accuracy": float(right[whole.test_mask].float().mean())}

    batches = make_loader(ctx, data) if ctx.sampled else [whole]
    return SimpleNamespace(step=step, batches=batches, infer=infer, evaluate=evaluate)


def make_loader(ctx, data):
    more = {"input_nodes": data.train_mask, "batch_size": ctx.batch, "shuffle": True}
    more["pin_memory"] = ctx.device.type == "cuda"  # only copies from pinned memory need no wait
    if WITH_PYG_LIB:
        return NeighborLoader(data, ctx.fanout, **more)
    return NodeLoader(data, Sampler(data, ctx.fanout), **more)


def load(ctx):
    ctx.note(f"neighbours sampled by {'pyg-lib' if WITH_PYG_LIB else 'plain torch'}")
    if os.path.exists(os.path.join(ctx.root, "Cora", "raw", "ind.cora.test.index")):
        ctx.note(f"real Cora from {ctx.root}")
        data = Planetoid(ctx.root, "Cora")[0]
    else:
        ctx.note("generated graph with Cora's statistics")
        data = generate(2708, 5278, 1433, 7)
    return (GCNNorm()(data) if ctx.norm_ahead else data), 7


def generate(nodes, pairs, features, classes):
    """A graph with long-tailed degrees, neighbours mostly of the same class, and features that only hint at the
    class."""
    draw = torch.Generator().manual_seed(0)
    y = (classes * torch.rand(nodes, generator=draw) ** 1.2).long().sort().values  # large and small classes
    size = y.bincount(minlength=classes)
    first = size.cumsum(0) - size
    source = torch.randint(nodes, (pairs,), generator=draw)
    stranger = torch.randint(nodes, (pairs,), generator=draw)
    label = y[torch.where(torch.rand(pairs, generator=draw) < 0.75, source, stranger)]
    target = first[label] + (size[label] * torch.rand(pairs, generator=draw) ** 3).long()  # popular nodes come first
    x = torch.randn(nodes, features, generator=draw) / features**0.5
    x += torch.randn(classes, features, generator=draw)[y] * 2.5 / features
    order = torch.randperm(nodes, generator=draw)
    train = torch.cat([order[y[order] == label][:20] for label in range(classes)])
    test = order[~torch.isin(order, train)][:1000]
    masks = [torch.zeros(nodes, dtype=torch.bool).index_fill(0, part, True) for part in (train, test)]
    both = torch.cat([torch.stack([source, target]), torch.stack([target, source])], 1)
    return Data(x=x, y=y, edge_index=both, train_mask=masks[0], test_mask=masks[1])


if __name__ == "__main__":
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    ctx = SimpleNamespace(**PARAMS, device=device, seed=0, compile=lambda module, **_: module, note=print)
    torch.manual_seed(ctx.seed)
    training = setup(ctx)
    for epoch in range(1, 101):
        losses = [training.step(batch) for batch in training.batches]
        if epoch % 20 == 0:
            accuracy = training.evaluate()["test accuracy"]
            print(f"epoch {epoch:3d}  loss {torch.stack(losses).mean():.4f}  test accuracy {accuracy:.3f}")
