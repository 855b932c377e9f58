"""Modules under keys that are tuples, such as edge types: once a graph break, today none.

`before` looks them up under tuples (PyG's ModuleDict turns them into strings), `after` under strings. With
today's PyG and torch both are one graph; with older ones `before` breaks in every layer.
"""

from types import SimpleNamespace

import torch
from torch.nn.functional import cross_entropy
from torch_geometric.nn import SAGEConv
from torch_geometric.nn.module_dict import ModuleDict

PARAMS = {"tuples": True, "nodes": 1000, "hidden": 64, "lr": 0.01}
VARIANTS = {"before": {}, "after": {"tuples": False}}
EDGES = [("item", "like", "item"), ("item", "near", "item")]
FEATURES, CLASSES = 32, 8


class Net(torch.nn.Module):
    def __init__(self, hidden, tuples):
        super().__init__()
        self.tuples = tuples
        layers = {edge: SAGEConv(FEATURES, hidden) for edge in EDGES}
        self.layers = ModuleDict(layers if tuples else {"__".join(edge): layer for edge, layer in layers.items()})
        self.head = torch.nn.Linear(hidden, CLASSES)

    def forward(self, x, edges):
        keys = {edge: edge if self.tuples else "__".join(edge) for edge in edges}
        return self.head(sum(self.layers[keys[edge]](x, pairs) for edge, pairs in edges.items()).relu())


def setup(ctx):
    ctx.note(f"a generated graph of {ctx.nodes} nodes")
    draw = torch.Generator().manual_seed(0)
    y = torch.randint(CLASSES, (ctx.nodes,), generator=draw).to(ctx.device)
    x = torch.randn(ctx.nodes, FEATURES, generator=draw).to(ctx.device)
    x[:, :CLASSES] += torch.nn.functional.one_hot(y, CLASSES)
    edges = {edge: torch.randint(ctx.nodes, (2, 8 * ctx.nodes), generator=draw).to(ctx.device) for edge in EDGES}
    model = Net(ctx.hidden, ctx.tuples).to(ctx.device)
    compiled = ctx.compile(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=ctx.lr)

    def step():
        optimizer.zero_grad()
        loss = cross_entropy(compiled(x, edges), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return SimpleNamespace(step=step)


if __name__ == "__main__":
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    ctx = SimpleNamespace(**PARAMS, device=device, seed=0, compile=lambda module=None, **_: module, note=print)
    torch.manual_seed(ctx.seed)
    training = setup(ctx)
    for count in range(1, 31):
        loss = training.step()
        if count % 10 == 0:
            print(f"step {count}  loss {loss:.4f}")
