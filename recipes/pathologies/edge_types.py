"""Recompilation by edge types: a sampled heterogeneous batch may have one edge of a type, none, or no such key.

Dynamo treats the sizes 0 and 1 as constants, and each set of keys as a different dictionary, so `before` recompiles for
all of them, with or without dynamic shapes. `after` always passes every key, and adds two edges of each type between
dummy nodes, whose labels are ignored: one graph, and exactly the same loss. (With Adam it would differ slightly: Adam
leaves a weight without a gradient alone, but still moves one whose gradient is zero.)
"""

from types import SimpleNamespace

import torch
from torch.nn.functional import cross_entropy, pad
from torch_geometric.nn import HeteroConv, SAGEConv

PARAMS = {"dummies": False, "hidden": 64, "lr": 0.1, "batches": 24}
VARIANTS = {
    "before": {"dynamic": True},
    "after": {"dynamic": True, "dummies": True},
}
NODES = {"paper": 300, "author": 500}
CITES, WRITES = ("paper", "cites", "paper"), ("author", "writes", "paper")
FEATURES, CLASSES, IGNORED = 32, 8, -100


class Net(torch.nn.Module):
    def __init__(self, hidden):
        super().__init__()
        # Without root weights and biases, a type without edges adds nothing, just like a type that is missing.
        self.layer = HeteroConv({edge: make_layer(hidden) for edge in (CITES, WRITES)})
        self.paper = torch.nn.Linear(FEATURES, hidden)
        self.head = torch.nn.Linear(hidden, CLASSES)

    def forward(self, x_dict, edge_index_dict):
        return self.head((self.paper(x_dict["paper"]) + self.layer(x_dict, edge_index_dict)["paper"]).relu())


def make_layer(hidden):
    return SAGEConv((FEATURES, FEATURES), hidden, bias=False, root_weight=False)


def setup(ctx):
    ctx.note(f"{ctx.batches} generated batches of papers and authors")
    batches = [generate(at) for at in range(ctx.batches)]
    if ctx.dummies:
        batches = [add_dummies(*batch) for batch in batches]
    batches = [to_device(batch, ctx.device) for batch in batches]
    model = Net(ctx.hidden).to(ctx.device)
    compiled = ctx.compile(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=ctx.lr)

    def step(batch):
        x, edges, y = batch
        optimizer.zero_grad()
        loss = cross_entropy(compiled(x, edges), y, ignore_index=IGNORED)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return SimpleNamespace(step=step, batches=batches)


def to_device(part, device):
    if isinstance(part, dict):
        return {key: to_device(each, device) for key, each in part.items()}
    return part.to(device) if torch.is_tensor(part) else [to_device(each, device) for each in part]


def add_dummies(x, edges, y):
    """A last row in every table, and two edges of every type between the last rows."""
    ends = {edge: torch.tensor([[len(x[edge[0]])] * 2, [len(x[edge[2]])] * 2]) for edge in (CITES, WRITES)}
    none = torch.empty(2, 0, dtype=torch.long)
    edges = {edge: torch.cat([edges.get(edge, none), dummy], 1) for edge, dummy in ends.items()}
    return {name: pad(rows, (0, 0, 0, 1)) for name, rows in x.items()}, edges, pad(y, (0, 1), value=IGNORED)


def generate(seed):
    """Batches like those of a sampler: in turn with many citations, none, one, and without that key."""
    draw = torch.Generator().manual_seed(seed)
    count = {name: nodes + int(torch.randint(40, (), generator=draw)) for name, nodes in NODES.items()}
    x = {name: torch.randn(nodes, FEATURES, generator=draw) for name, nodes in count.items()}
    y = (x["paper"][:, :CLASSES] + torch.randn(count["paper"], CLASSES, generator=draw)).argmax(1)
    edges = {WRITES: torch.randint(count["author"], (2, 900 + 7 * seed), generator=draw) % count["paper"]}
    cited = (400 + 5 * seed, 0, 1, None)[seed % 4]
    if cited is not None:
        edges[CITES] = torch.randint(count["paper"], (2, cited), generator=draw)
    return x, edges, y


if __name__ == "__main__":
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    ctx = SimpleNamespace(**PARAMS, device=device, seed=0, compile=lambda module=None, **_: module, note=print)
    torch.manual_seed(ctx.seed)
    training = setup(ctx)
    for epoch in range(1, 6):
        losses = [training.step(batch) for batch in training.batches]
        print(f"epoch {epoch}  loss {torch.stack(losses).mean():.4f}")
