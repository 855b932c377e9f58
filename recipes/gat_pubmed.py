"""A two-layer GAT on PubMed, full batch; `--param model=gcn|sage|gat|gin --param dataset=cora|citeseer|pubmed`.

The graph is read from `--param root=DIR`, downloaded there if there is a network, and otherwise generated
with the same statistics (as it is with `scale` below 1); the run says which.

By default, GATConv and GCNConv add self-loops in every layer, and torch.compile breaks its graph there. The
`-ahead` variants add them once, before training: one graph. GraphSAGE and GIN need no cure.
"""

import os
from types import SimpleNamespace
from urllib.request import urlopen

import torch
from torch.nn.functional import cross_entropy, dropout, elu
from torch_geometric.data import Data
from torch_geometric.datasets import Planetoid
from torch_geometric.nn import MLP, GATConv, GCNConv, GINConv, SAGEConv
from torch_geometric.transforms import AddSelfLoops, Compose, GCNNorm, NormalizeFeatures

PARAMS = {
    "model": "gat",
    "dataset": "pubmed",
    "hidden": 64,
    "heads": 8,
    "dropout": 0.6,
    "lr": 0.005,
    "weight_decay": 5e-4,
    "amp": False,  # bfloat16
    "loops_ahead": False,
    "scale": 1.0,
    "root": os.environ.get("PLANETOID_ROOT", "data"),
}
VARIANTS = {
    "eager-ahead": {"compile": False, "loops_ahead": True},
    "compiled-ahead": {"loops_ahead": True},
}
STATISTICS = {  # nodes, pairs of neighbours, features, classes
    "cora": (2708, 5278, 1433, 7),
    "citeseer": (3327, 4552, 3703, 6),
    "pubmed": (19717, 44324, 500, 3),
}
NAMES = {"cora": "Cora", "citeseer": "CiteSeer", "pubmed": "PubMed"}
PATIENCE_S = 5


class Net(torch.nn.Module):
    def __init__(self, ctx, features, classes):
        super().__init__()
        self.dropout, self.weighted = ctx.dropout, ctx.model == "gcn"
        self.first = make_layer(ctx, features, ctx.hidden, ctx.heads)
        self.second = make_layer(ctx, ctx.hidden, classes, 1)

    def forward(self, x, edge_index, edge_weight=None):
        edges = (edge_index, edge_weight) if self.weighted else (edge_index,)
        x = elu(self.first(dropout(x, self.dropout, self.training), *edges))
        return self.second(dropout(x, self.dropout, self.training), *edges)


def make_layer(ctx, inputs, outputs, heads):
    if ctx.model == "gcn":
        return GCNConv(inputs, outputs, normalize=not ctx.loops_ahead)
    if ctx.model == "sage":
        return SAGEConv(inputs, outputs)
    if ctx.model == "gin":
        return GINConv(MLP([inputs, ctx.hidden, outputs]), train_eps=True)
    return GATConv(inputs, outputs // heads, heads, add_self_loops=not ctx.loops_ahead, dropout=ctx.dropout)


def prepare(ctx):
    """Fetch the graph once, before anything is timed."""
    if ctx.scale < 1 or on_disk(ctx):
        return
    ctx.note(f"{NAMES[ctx.dataset]} is not in {ctx.root}: downloading it ({PATIENCE_S} s for an answer) …")
    try:
        urlopen(f"{Planetoid.url}/ind.{ctx.dataset}.y", timeout=PATIENCE_S).close()
        Planetoid(ctx.root, NAMES[ctx.dataset])
    except Exception as error:  # without a network, every layer of the software raises its own class of exception
        ctx.note(f"no download ({error})")


def setup(ctx):
    data, classes = load(ctx)
    train = data.train_mask.nonzero()[:, 0]  # indices: with a mask, every step would wait for the number of its rows
    model = Net(ctx, data.num_features, classes).to(ctx.device)
    compiled = ctx.compile(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=ctx.lr, weight_decay=ctx.weight_decay)

    def step():
        model.train()
        optimizer.zero_grad()
        with torch.autocast(data.x.device.type, torch.bfloat16, enabled=ctx.amp):
            out = compiled(data.x, data.edge_index, data.edge_weight)
            loss = cross_entropy(out[train].float(), data.y[train])
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
    ahead = {"gcn": [GCNNorm()], "gat": [AddSelfLoops()]}.get(ctx.model, []) if ctx.loops_ahead else []
    nodes, pairs, features, classes = STATISTICS[ctx.dataset]
    if ctx.scale == 1 and on_disk(ctx):
        ctx.note(f"real {NAMES[ctx.dataset]} from {ctx.root}")
        data = Planetoid(ctx.root, NAMES[ctx.dataset], transform=NormalizeFeatures())[0]
    else:
        ctx.note(f"generated graph with the statistics of {NAMES[ctx.dataset]} at scale {ctx.scale:g}")
        data = generate(max(int(nodes * ctx.scale), 200 * classes), int(pairs * ctx.scale), features, classes)
    return Compose(ahead)(data).to(ctx.device), classes


def on_disk(ctx):
    return os.path.exists(os.path.join(ctx.root, NAMES[ctx.dataset], "raw", f"ind.{ctx.dataset}.test.index"))


def generate(nodes, pairs, features, classes):
    """A graph with long-tailed degrees, neighbours mostly of the same class, and features that only hint at the
    class."""
    draw = torch.Generator().manual_seed(0)
    y = (classes * torch.rand(nodes, generator=draw) ** 1.2).long().sort().values  # large and small classes
    size = y.bincount(minlength=classes)
    first = size.cumsum(0) - size
    source = torch.randint(nodes, (pairs,), generator=draw)
    stranger = torch.randint(nodes, (pairs,), generator=draw)
    label = y[torch.where(torch.rand(pairs, generator=draw) < 0.7, source, stranger)]
    target = first[label] + (size[label] * torch.rand(pairs, generator=draw) ** 3).long()  # popular nodes come first
    x = torch.randn(nodes, features, generator=draw) / features**0.5
    x += torch.randn(classes, features, generator=draw)[y] * 2.5 / features
    order = torch.randperm(nodes, generator=draw)
    train = torch.cat([order[y[order] == label][:20] for label in range(classes)])
    test = order[~torch.isin(order, train)][: min(1000, nodes // 2)]
    masks = [torch.zeros(nodes, dtype=torch.bool).index_fill(0, part, True) for part in (train, test)]
    pairs = torch.stack([source, target])
    edges = torch.cat([pairs, pairs.flip(0)], 1)
    return Data(x=x, y=y, edge_index=edges, train_mask=masks[0], test_mask=masks[1])


if __name__ == "__main__":
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    ctx = SimpleNamespace(**PARAMS, device=device, seed=0, compile=lambda module, **_: module, note=print)
    torch.manual_seed(ctx.seed)
    prepare(ctx)
    training = setup(ctx)
    for epoch in range(1, 41):
        loss = training.step()
        if epoch % 20 == 0:
            print(f"epoch {epoch:3d}  loss {loss:.4f}  test accuracy {training.evaluate()['test accuracy']:.3f}")
