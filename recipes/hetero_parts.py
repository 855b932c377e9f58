"""A heterogeneous model compiled whole, or layer by layer; `--param model=hetero_conv|to_hetero|hgt`.

The advice used to be to compile only the message passing of each edge type (`parts`), because the dictionaries around
it broke the graph. Today HeteroConv and to_hetero compile as a whole, into one graph; HGTConv still breaks.

The graph is generated: papers, authors and venues; `scale` makes it larger.
"""

from types import SimpleNamespace

import torch
from torch.nn.functional import cross_entropy
from torch_geometric.data import HeteroData
from torch_geometric.nn import HeteroConv, HGTConv, SAGEConv, to_hetero

PARAMS = {"model": "hetero_conv", "whole": True, "hidden": 64, "layers": 2, "lr": 0.005, "scale": 1.0}
VARIANTS = {"parts": {"whole": False}}
NODES = {"paper": 3000, "author": 4000, "venue": 40}
EDGES = {("author", "writes", "paper"): 10000, ("paper", "in", "venue"): 3000, ("paper", "cites", "paper"): 12000}
FEATURES, CLASSES = 64, 8


class Net(torch.nn.Module):
    """Encoders that bring each node type's features to one width, the layers, and a head for papers."""

    def __init__(self, ctx, metadata):
        super().__init__()
        self.encode = torch.nn.ModuleDict({name: torch.nn.Linear(FEATURES, ctx.hidden) for name in metadata[0]})
        parts = (lambda module: module) if ctx.whole else ctx.compile
        self.layers = torch.nn.ModuleList(make_layer(ctx, metadata, parts) for _ in range(ctx.layers))
        self.head = torch.nn.Linear(ctx.hidden, CLASSES)

    def forward(self, x_dict, edge_index_dict):
        x_dict = {name: self.encode[name](x) for name, x in x_dict.items()}
        for layer in self.layers:
            x_dict = {name: x.relu() for name, x in layer(x_dict, edge_index_dict).items()}
        return self.head(x_dict["paper"])


def make_layer(ctx, metadata, parts):
    if ctx.model == "hgt":
        return parts(HGTConv(ctx.hidden, ctx.hidden, metadata, heads=4))
    if ctx.model == "to_hetero":
        return parts(to_hetero(Homogeneous(ctx.hidden), metadata))
    return HeteroConv({edge: parts(SAGEConv(ctx.hidden, ctx.hidden)) for edge in metadata[1]}, aggr="sum")


class Homogeneous(torch.nn.Module):
    """The model that to_hetero transforms, which must call the edges `edge_index`."""

    def __init__(self, hidden):
        super().__init__()
        self.layer = SAGEConv(hidden, hidden)

    def forward(self, x, edge_index):
        return self.layer(x, edge_index)


def setup(ctx):
    ctx.note(f"generated papers, authors and venues at scale {ctx.scale:g}")
    data = generate(ctx.scale).to(ctx.device)
    model = Net(ctx, data.metadata()).to(ctx.device)
    compiled = ctx.compile(model) if ctx.whole else model
    optimizer = torch.optim.Adam(model.parameters(), lr=ctx.lr)
    paper = data["paper"]
    train = paper.train.nonzero()[:, 0]  # indices: with a mask, every step would wait for the number of its rows

    def step():
        optimizer.zero_grad()
        out = compiled(data.x_dict, data.edge_index_dict)
        loss = cross_entropy(out[train], paper.y[train])
        loss.backward()
        optimizer.step()
        return loss.detach()

    @torch.no_grad()
    def infer():
        return compiled(data.x_dict, data.edge_index_dict)

    def evaluate():
        right = infer().argmax(-1) == paper.y
        return {"test accuracy": float(right[~paper.train].float().mean())}

    return SimpleNamespace(step=step, infer=infer, evaluate=evaluate)


def generate(scale):
    """Every node has a subject; links mostly stay within it, and features hint at it."""
    draw = torch.Generator().manual_seed(0)
    data = HeteroData()
    subject = {name: torch.arange(max(int(nodes * scale), CLASSES)) % CLASSES for name, nodes in NODES.items()}
    for name, label in subject.items():
        data[name].x = torch.randn(len(label), FEATURES, generator=draw)
        data[name].x += 0.15 * torch.randn(CLASSES, FEATURES, generator=draw)[label]
    for (start, relation, end), count in EDGES.items():
        links = int(count * scale)
        source = torch.randint(len(subject[start]), (links,), generator=draw)
        target = torch.randint(len(subject[end]) // CLASSES, (links,), generator=draw) * CLASSES
        chosen = torch.where(torch.rand(links, generator=draw) < 0.6, source, source.flip(0)) % CLASSES
        edges = torch.stack([source, target + chosen])
        data[start, relation, end].edge_index = edges
        data[end, f"rev_{relation}", start].edge_index = edges.flip(0)
    data["paper"].y = subject["paper"]
    data["paper"].train = torch.rand(len(subject["paper"]), generator=draw) < 0.1
    return data


if __name__ == "__main__":
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    ctx = SimpleNamespace(**PARAMS, device=device, seed=0, compile=lambda module, **_: module, note=print)
    torch.manual_seed(ctx.seed)
    training = setup(ctx)
    for epoch in range(1, 51):
        loss = training.step()
        if epoch % 10 == 0:
            print(f"epoch {epoch:3d}  loss {loss:.4f}  test accuracy {training.evaluate()['test accuracy']:.3f}")
