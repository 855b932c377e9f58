"""A two-layer GCN on Cora, full batch.

Cora is read from `--param root=DIR` (default: $CORA_ROOT, else `data`), downloaded there if there is a
network, and otherwise replaced by a generated graph of the same statistics; the run says which.

`compiled` shows what torch.compile makes of GCNConv by default: seven graphs, because every layer adds self-loops
to the edges. The `-norm` variants add them once, before training: one graph.
"""

import os
from types import SimpleNamespace
from urllib.request import urlopen

import torch
from torch.nn.functional import cross_entropy, dropout
from torch_geometric.data import Data
from torch_geometric.datasets import Planetoid
from torch_geometric.nn import GCNConv
from torch_geometric.transforms import Compose, GCNNorm, NormalizeFeatures

PARAMS = {
    "hidden": 64,
    "dropout": 0.5,
    "lr": 0.01,
    "weight_decay": 5e-4,
    "norm_ahead": False,
    "root": os.environ.get("CORA_ROOT", "data"),
}
VARIANTS = {
    "eager-norm": {"compile": False, "norm_ahead": True},
    "compiled-norm": {"norm_ahead": True},
}
PATIENCE_S = 5


class GCN(torch.nn.Module):
    def __init__(self, features, hidden, classes, dropout, normalize):
        super().__init__()
        self.dropout = dropout
        self.first = GCNConv(features, hidden, normalize=normalize)
        self.second = GCNConv(hidden, classes, normalize=normalize)

    def forward(self, x, edge_index, edge_weight=None):
        x = dropout(x, self.dropout, self.training)
        x = self.first(x, edge_index, edge_weight).relu()
        x = dropout(x, self.dropout, self.training)
        return self.second(x, edge_index, edge_weight)


def prepare(ctx):
    """Fetch Cora once, before anything is timed."""
    if on_disk(ctx.root):
        return
    ctx.note(f"Cora is not in {ctx.root}: downloading it ({PATIENCE_S} s for an answer) …")
    try:
        urlopen(f"{Planetoid.url}/ind.cora.y", timeout=PATIENCE_S).close()
        Planetoid(ctx.root, "Cora")
    except Exception as error:  # without a network, every layer of the software raises its own class of exception
        ctx.note(f"no download ({error})")


def setup(ctx):
    data = load(ctx)
    train = data.train_mask.nonzero()[:, 0]  # indices: with a mask, every step would wait for the number of its rows
    model = GCN(data.num_features, ctx.hidden, int(data.y.max()) + 1, ctx.dropout, not ctx.norm_ahead).to(ctx.device)
    compiled = ctx.compile(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=ctx.lr, weight_decay=ctx.weight_decay)

    def step():
        model.train()
        optimizer.zero_grad()
        out = compiled(data.x, data.edge_index, data.edge_weight)
        loss = cross_entropy(out[train], data.y[train])
        loss.backward()
        optimizer.step()
        return loss.detach()

    @torch.no_grad()
    def infer():
        model.eval()
        return compiled(data.x, data.edge_index, data.edge_weight)

    def evaluate():
        right = infer().argmax(-1) == data.y
        return {"test accuracy": float(right[data.test_mask].float().mean())}

    return SimpleNamespace(step=step, infer=infer, evaluate=evaluate)


def load(ctx):
    transform = Compose([NormalizeFeatures(), *([GCNNorm()] if ctx.norm_ahead else [])])
    if on_disk(ctx.root):
        ctx.note(f"real Cora from {ctx.root}")
        data = Planetoid(ctx.root, "Cora")[0]
    else:
        ctx.note("generated graph with Cora's statistics")
        data = generate()
    return transform(data).to(ctx.device)


def on_disk(root):
    parts = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
    return all(os.path.exists(os.path.join(root, "Cora", "raw", f"ind.cora.{part}")) for part in parts)


def generate(seed=0):
    """A graph with Cora's counts, class sizes, homophily and long-tailed degrees; words only hint at the class."""
    draw = torch.Generator().manual_seed(seed)
    y = torch.repeat_interleave(torch.tensor([351, 217, 418, 818, 426, 298, 180]))
    y = y[torch.randperm(len(y), generator=draw)]
    return Data(x=draw_words(y, 1433, draw), y=y, edge_index=draw_edges(y, 5278, draw), **split(y, draw))


def draw_edges(y, count, draw):
    """Every node is linked to a popular one, mostly of the same class; then popular nodes are linked to each other."""
    popularity = (torch.rand(len(y), generator=draw) + 0.003) ** -0.9
    source = torch.cat([torch.arange(len(y)), torch.multinomial(popularity, 2 * count, True, generator=draw)])
    target = torch.multinomial(popularity, len(source), True, generator=draw)
    alike = torch.rand(len(source), generator=draw) < 0.78
    for label in range(7):
        members, at = torch.where(y == label)[0], torch.where(alike & (y[source] == label))[0]
        target[at] = members[torch.multinomial(popularity[members], len(at), True, generator=draw)]
    target = torch.where(source == target, (target + 1) % len(y), target)
    pairs = torch.stack([source, target]).sort(0).values
    pairs = torch.tensor([*dict.fromkeys(map(tuple, pairs.T.tolist()))][:count]).T
    return torch.cat([pairs, pairs.flip(0)], dim=1)


def draw_words(y, count, draw):
    """Rare and common words, 18 for each node; in each class, a tenth of the words is three times as likely."""
    typical = torch.rand(7, count, generator=draw) < 0.1
    chance = torch.rand(count, generator=draw) ** 3 * (1 + 2.5 * typical[y])
    return (torch.rand(len(y), count, generator=draw) < chance * (18 / chance.sum(1, keepdim=True))).float()


def split(y, draw):
    """20 nodes of each class to train on, 500 to validate, 1000 to test."""
    order = torch.randperm(len(y), generator=draw)
    train = torch.cat([order[y[order] == label][:20] for label in range(7)])
    rest = order[~torch.isin(order, train)]
    return {
        f"{name}_mask": torch.zeros(len(y), dtype=torch.bool).index_fill(0, index, True)
        for name, index in (("train", train), ("val", rest[:500]), ("test", rest[500:1500]))
    }


if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    ctx = SimpleNamespace(**PARAMS, device=device, seed=0, compile=lambda module: module, note=print)
    torch.manual_seed(ctx.seed)
    prepare(ctx)
    training = setup(ctx)
    for epoch in range(1, 201):
        loss = training.step()
        if epoch % 20 == 0:
            print(f"epoch {epoch:3d}  loss {loss:.4f}  test accuracy {training.evaluate()['test accuracy']:.3f}")
