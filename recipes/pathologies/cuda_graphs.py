"""CUDA graphs over varying shapes: reduce-overhead records a graph of launches for each size it meets.

- `before` records again with every batch, which is slower than launching, and each recording keeps its memory.
- `padded` fills every batch up to the same size: recorded once, replayed from then on.
- `no-cudagraphs` leaves them out: `dynamic=True` in the default mode, or `max-autotune-no-cudagraphs`.

On a CPU there are no CUDA graphs, and the variants differ only in the number of compilations.
"""

from types import SimpleNamespace

import torch
from torch.nn.functional import cross_entropy, pad
from torch.utils.data import DataLoader
from torch_geometric.data import Data
from torch_geometric.nn import SAGEConv

PARAMS = {"padded": False, "nodes": 1000, "hidden": 64, "lr": 0.01}
VARIANTS = {
    "before": {"mode": "reduce-overhead"},
    "before-dynamic": {"mode": "reduce-overhead", "dynamic": True},
    "padded": {"mode": "reduce-overhead", "padded": True},
    "no-cudagraphs": {"dynamic": True},
    "max-autotune-no-cudagraphs": {"mode": "max-autotune-no-cudagraphs", "dynamic": True},
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
    ctx.note(f"generated batches of about {ctx.nodes} nodes, each of a different size")
    model = SAGE(ctx.hidden).to(ctx.device)
    compiled = ctx.compile(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=ctx.lr)

    def step(batch):
        batch = batch.to(ctx.device, non_blocking=True)
        optimizer.zero_grad()
        loss = cross_entropy(compiled(batch.x, batch.edge_index), batch.y, ignore_index=IGNORED)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return SimpleNamespace(step=step, batches=make_loader(ctx))


def make_loader(ctx):
    def make_batch(at):
        batch = generate(ctx.nodes, at)
        return fill_up(batch, ctx.nodes + ctx.nodes // 10 + 1, 4 * ctx.nodes + 1) if ctx.padded else batch

    pinned = ctx.device.type == "cuda"  # only copies from pinned memory need no wait
    return DataLoader(range(1_000_000), batch_size=None, collate_fn=make_batch, pin_memory=pinned)


def fill_up(batch, nodes, edges):
    """Pad a batch: the last node is a dummy, and the missing edges lead from it to itself."""
    x = pad(batch.x, (0, 0, 0, nodes - batch.num_nodes))
    y = pad(batch.y, (0, nodes - batch.num_nodes), value=IGNORED)
    return Data(x=x, y=y, edge_index=pad(batch.edge_index, (0, edges - batch.num_edges), value=nodes - 1))


def generate(nodes, at):
    """Batches like those of a neighbour sampler: about that many nodes and edges, and never the same sizes twice.

    Both numbers are periodic, and the periods have no common divisor: for 1000 nodes, sizes recur after 200 200
    batches.
    """
    draw = torch.Generator().manual_seed(at)
    edges = 3 * nodes + 7919 * at % (nodes + 1)
    nodes += 7919 * at % (nodes // 5) - nodes // 10
    y = torch.randint(CLASSES, (nodes,), generator=draw)
    x = torch.randn(nodes, FEATURES, generator=draw)
    x[:, :CLASSES] += torch.nn.functional.one_hot(y, CLASSES)
    pairs = torch.randint(nodes, (2, 6 * edges), generator=draw)
    alike = (y[pairs[0]] == y[pairs[1]]) | (torch.rand(pairs.size(1), generator=draw) < 0.3)
    return Data(x=x, y=y, edge_index=pairs[:, alike][:, :edges])


if __name__ == "__main__":
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    ctx = SimpleNamespace(**PARAMS, device=device, seed=0, compile=lambda module=None, **_: module, note=print)
    torch.manual_seed(ctx.seed)
    training = setup(ctx)
    for count, batch in zip(range(1, 101), training.batches, strict=False):
        loss = training.step(batch)
        if count % 20 == 0:
            print(f"step {count}  loss {loss:.4f}")
