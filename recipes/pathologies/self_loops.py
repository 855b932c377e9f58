"""Graph breaks by self-loops: GCNConv and GATConv add them in every layer and step, and first look for existing ones.

`before` breaks its graph there, and waits for the device. `after` adds them (and GCN's norm) once, before training: one
graph, and exactly the same numbers. `--param model=gat` does the same with GAT.
"""

from types import SimpleNamespace

import torch
from torch.nn.functional import cross_entropy
from torch_geometric.data import Data
from torch_geometric.nn import GATConv, GCNConv
from torch_geometric.transforms import AddSelfLoops, GCNNorm

PARAMS = {"ahead": False, "model": "gcn", "nodes": 2000, "hidden": 64, "lr": 0.01}
VARIANTS = {
    "before-eager": {"compile": False},
    "before": {},
    "after-eager": {"compile": False, "ahead": True},
    "after": {"ahead": True},
}
FEATURES, CLASSES = 32, 8


class Net(torch.nn.Module):
    def __init__(self, ctx):
        super().__init__()
        self.first = make_layer(ctx, FEATURES, ctx.hidden)
        self.second = make_layer(ctx, ctx.hidden, CLASSES)

    def forward(self, x, edge_index, edge_weight=None):
        return self.second(self.first(x, edge_index, edge_weight).relu(), edge_index, edge_weight)


def make_layer(ctx, inputs, outputs):
    if ctx.model == "gat":
        return GATConv(inputs, outputs, add_self_loops=not ctx.ahead)
    return GCNConv(inputs, outputs, normalize=not ctx.ahead)


def setup(ctx):
    ctx.note(f"a generated graph of {ctx.nodes} nodes")
    data = generate(ctx.nodes)
    if ctx.ahead:
        data = (AddSelfLoops() if ctx.model == "gat" else GCNNorm())(data)
    data = data.to(ctx.device)
    model = Net(ctx).to(ctx.device)
    compiled = ctx.compile(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=ctx.lr)

    def step():
        optimizer.zero_grad()
        loss = cross_entropy(compiled(data.x, data.edge_index, data.edge_weight), data.y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return SimpleNamespace(step=step)


def generate(nodes):
    draw = torch.Generator().manual_seed(0)
    y = torch.randint(CLASSES, (nodes,), generator=draw)
    x = torch.randn(nodes, FEATURES, generator=draw)
    x[:, :CLASSES] += torch.nn.functional.one_hot(y, CLASSES)
    edges = torch.randint(nodes, (2, 8 * nodes), generator=draw)
    alike = (y[edges[0]] == y[edges[1]]) | (torch.rand(8 * nodes, generator=draw) < 0.3)
    return Data(x=x, y=y, edge_index=edges[:, alike & (edges[0] != edges[1])])


if __name__ == "__main__":
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    ctx = SimpleNamespace(**PARAMS, device=device, seed=0, compile=lambda module=None, **_: module, note=print)
    torch.manual_seed(ctx.seed)
    training = setup(ctx)
    for count in range(1, 31):
        loss = training.step()
        if count % 10 == 0:
            print(f"step {count}  loss {loss:.4f}")
