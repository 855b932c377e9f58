"""Recompilation by shapes: every sampled batch has its own number of nodes and edges.

- `before` (dynamic=False) compiles again for each batch, until Dynamo gives up after eight, and the rest runs eagerly.
- `auto`, torch.compile's default, compiles a second time, for any size; `dynamic` does so the first time.
- `padded` fills every batch up to the same size with a dummy node, whose label is ignored, and edges to itself: one
  graph for fixed sizes, which CUDA graphs can replay, and exactly the same loss.
"""

from types import SimpleNamespace

import torch
from torch.nn.functional import cross_entropy, pad
from torch_geometric.data import Data
from torch_geometric.nn import SAGEConv

PARAMS = {"padded": False, "nodes": 1000, "batches": 24, "hidden": 64, "lr": 0.01}
VARIANTS = {
    "before": {"dynamic": False},
    "auto": {},
    "dynamic": {"dynamic": True},
    "padded": {"dynamic": False, "padded": True},
}
FEATURES, CLASSES, IGNORED = 32, 8, -100


class SAGE(torch.nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.first = SAGEConv(FEATURES, hidden)
        self.second = SAGEConv(hidden, CLASSES)

    def forward(self, x, edge_index):
        return self.second(self.first(x, edge_index).relu(), edge_index)


def setup(ctx):
    ctx.note(f"{ctx.batches} generated batches of about {ctx.nodes} nodes")
    batches = [generate(ctx.nodes, at) for at in range(ctx.batches)]
    if ctx.padded:
        nodes = max(batch.num_nodes for batch in batches) + 1
        edges = max(batch.num_edges for batch in batches)
        batches = [fill_up(batch, nodes, edges) for batch in batches]
    batches = [batch.to(ctx.device) for batch in batches]
    model = SAGE(ctx.hidden).to(ctx.device)
    compiled = ctx.compile(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=ctx.lr)

    def step(batch):
        optimizer.zero_grad()
        loss = cross_entropy(compiled(batch.x, batch.edge_index), batch.y, ignore_index=IGNORED)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return SimpleNamespace(step=step, batches=batches)


def fill_up(batch, nodes, edges):
    """Pad a batch: the last node is a dummy, and the missing edges lead from it to itself."""
    x = pad(batch.x, (0, 0, 0, nodes - batch.num_nodes))
    y = pad(batch.y, (0, nodes - batch.num_nodes), value=IGNORED)
    return Data(x=x, y=y, edge_index=pad(batch.edge_index, (0, edges - batch.num_edges), value=nodes - 1))


def generate(nodes, seed):
    """Batches like those of a neighbour sampler: about that many nodes and edges, never the same numbers twice."""
    draw = torch.Generator().manual_seed(seed)
    nodes += int(torch.randint(-nodes // 10, nodes // 10, (), generator=draw))
    y = torch.randint(CLASSES, (nodes,), generator=draw)
    x = torch.randn(nodes, FEATURES, generator=draw)
    x[:, :CLASSES] += torch.nn.functional.one_hot(y, CLASSES)
    edges = torch.randint(nodes, (2, 8 * nodes + 3 * seed), generator=draw)
    alike = (y[edges[0]] == y[edges[1]]) | (torch.rand(edges.size(1), generator=draw) < 0.3)
    return Data(x=x, y=y, edge_index=edges[:, alike])


if __name__ == "__main__":
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    ctx = SimpleNamespace(**PARAMS, device=device, seed=0, compile=lambda module=None, **_: module, note=print)
    torch.manual_seed(ctx.seed)
    training = setup(ctx)
    for epoch in range(1, 6):
        losses = [training.step(batch) for batch in training.batches]
        print(f"epoch {epoch}  loss {torch.stack(losses).mean():.4f}")
