"""A three-layer GIN on ogbn-arxiv, full batch; `--param model=gcn|sage|gat|gin`.

The graph is OGB's (`--param scale=1`: read from `--param root=DIR`, or downloaded there if there is a network);
below scale 1, as by default, and without a network it is generated with the same statistics. The run says which.

GIN compiles into one graph as it is. For GCN and GAT, that requires adding self-loops (and GCN's norm) once, before
training: `loops_ahead`, on by default here; recipes/gat_pubmed.py shows what happens without it.
"""

import os
import zipfile
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from urllib.request import urlopen

import torch
from torch.nn.functional import cross_entropy, dropout
from torch_geometric.data import Data
from torch_geometric.nn import MLP, GATConv, GCNConv, GINConv, SAGEConv
from torch_geometric.transforms import AddSelfLoops, Compose, GCNNorm, ToUndirected

PARAMS = {
    "model": "gin",
    "hidden": 64,
    "layers": 3,
    "heads": 4,
    "dropout": 0.5,
    "lr": 0.005,
    "amp": False,  # bfloat16
    "loops_ahead": True,
    "scale": 0.1,
    "root": os.environ.get("OGB_ROOT", "data"),
}
NODES, PAIRS, FEATURES, CLASSES = 169343, 1166243, 128, 40
URL = "https://snap.stanford.edu/ogb/data/nodeproppred/arxiv.zip"
PATIENCE_S = 5


class Net(torch.nn.Module):
    def __init__(self, ctx):
        super().__init__()
        self.dropout, self.weighted = ctx.dropout, ctx.model == "gcn"
        sizes = [FEATURES, *[ctx.hidden] * (ctx.layers - 1), CLASSES]
        self.layers = torch.nn.ModuleList(make_layer(ctx, *ends) for ends in pairwise(sizes))
        self.norms = torch.nn.ModuleList(torch.nn.BatchNorm1d(size) for size in sizes[1:-1])

    def forward(self, x, edge_index, edge_weight=None):
        edges = (edge_index, edge_weight) if self.weighted else (edge_index,)
        for layer, norm in zip(self.layers, self.norms, strict=False):  # the last layer has none
            x = dropout(norm(layer(x, *edges)).relu(), self.dropout, self.training)
        return self.layers[-1](x, *edges)


def make_layer(ctx, inputs, outputs):
    if ctx.model == "gcn":
        return GCNConv(inputs, outputs, normalize=not ctx.loops_ahead)
    if ctx.model == "sage":
        return SAGEConv(inputs, outputs)
    if ctx.model == "gat":
        return GATConv(inputs, outputs // ctx.heads, ctx.heads, add_self_loops=not ctx.loops_ahead)
    return GINConv(MLP([inputs, ctx.hidden, outputs]), train_eps=True)


def prepare(ctx):
    """Fetch the graph once, before anything is timed."""
    folder = Path(ctx.root, "arxiv")
    if ctx.scale < 1 or folder.exists():
        return
    ctx.note(f"ogbn-arxiv is not in {ctx.root}: downloading it ({PATIENCE_S} s for an answer) …")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with urlopen(URL, timeout=PATIENCE_S) as answer, open(f"{folder}.zip", "wb") as file:
            while chunk := answer.read(1 << 20):
                file.write(chunk)
        zipfile.ZipFile(f"{folder}.zip").extractall(folder.parent)
    except Exception as error:  # without a network, every layer of the software raises its own class of exception
        ctx.note(f"no download ({error})")


def setup(ctx):
    data = load(ctx)
    model = Net(ctx).to(ctx.device)
    compiled = ctx.compile(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=ctx.lr)

    def step():
        model.train()
        optimizer.zero_grad()
        with torch.autocast(data.x.device.type, torch.bfloat16, enabled=ctx.amp):
            out = compiled(data.x, data.edge_index, data.edge_weight)
            loss = cross_entropy(out[data.train].float(), data.y[data.train])
        loss.backward()
        optimizer.step()
        return loss.detach()

    @torch.no_grad()
    def infer():
        model.eval()
        return compiled(data.x, data.edge_index, data.edge_weight)

    def evaluate():
        right = infer().argmax(-1) == data.y
        return {"test accuracy": float(right[data.test].float().mean())}

    return SimpleNamespace(step=step, infer=infer, evaluate=evaluate)


def load(ctx):
    ahead = {"gcn": [GCNNorm()], "gat": [AddSelfLoops()]}.get(ctx.model, []) if ctx.loops_ahead else []
    folder = Path(ctx.root, "arxiv")
    if ctx.scale == 1 and folder.exists():
        ctx.note(f"real ogbn-arxiv from {ctx.root}")
        data = read(folder)
    else:
        ctx.note(f"generated graph with the statistics of ogbn-arxiv at scale {ctx.scale:g}")
        data = generate(max(int(NODES * ctx.scale), 10 * CLASSES), int(PAIRS * ctx.scale))
    return Compose([ToUndirected(), *ahead])(data).to(ctx.device)


def read(folder):
    """Read OGB's own files, as they are in its zip."""
    import pandas

    def table(name, kind):
        return torch.tensor(pandas.read_csv(folder / name, header=None).to_numpy(kind))

    train, test = (table(f"split/time/{part}.csv.gz", "int64")[:, 0] for part in ("train", "test"))
    x, y = table("raw/node-feat.csv.gz", "float32"), table("raw/node-label.csv.gz", "int64")[:, 0]
    return Data(x=x, y=y, edge_index=table("raw/edge.csv.gz", "int64").T.contiguous(), train=train, test=test)


def generate(nodes, pairs):
    """A graph with long-tailed degrees, neighbours mostly of the same class, and features that only hint at the
    class."""
    draw = torch.Generator().manual_seed(0)
    y = (CLASSES * torch.rand(nodes, generator=draw) ** 1.5).long().sort().values  # large and small classes
    size = y.bincount(minlength=CLASSES)
    first = size.cumsum(0) - size
    source = torch.randint(nodes, (pairs,), generator=draw)
    stranger = torch.randint(nodes, (pairs,), generator=draw)
    label = y[torch.where(torch.rand(pairs, generator=draw) < 0.6, source, stranger)]
    target = first[label] + (size[label] * torch.rand(pairs, generator=draw) ** 3).long()  # popular nodes come first
    x = torch.randn(nodes, FEATURES, generator=draw)
    x += torch.randn(CLASSES, FEATURES, generator=draw)[y] * 2 / FEATURES**0.5
    order = torch.randperm(nodes, generator=draw)
    train, test = order[: int(0.54 * nodes)], order[-int(0.29 * nodes) :]
    return Data(x=x, y=y, edge_index=torch.stack([source, target]), train=train, test=test)


if __name__ == "__main__":
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    ctx = SimpleNamespace(**PARAMS, device=device, seed=0, compile=lambda module, **_: module, note=print)
    torch.manual_seed(ctx.seed)
    prepare(ctx)
    training = setup(ctx)
    for epoch in range(1, 51):
        loss = training.step()
        if epoch % 10 == 0:
            print(f"epoch {epoch:3d}  loss {loss:.4f}  test accuracy {training.evaluate()['test accuracy']:.3f}")
