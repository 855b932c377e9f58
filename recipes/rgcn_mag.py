"""An R-GCN on ogbn-mag: papers, authors, institutions and fields, and eight relations between them, full batch.

RGCNConv goes through the relations and picks the edges of each by a mask, which causes breaks and recompilations.
`typed` picks them once, before training, and computes the same with a SAGEConv for each relation: one graph.

The graph is generated with mag's statistics, at a hundredth of its size; `--param scale=1` reads the real one from
`--param root=DIR` (as torch_geometric.datasets.OGB_MAG keeps it). The run says which.
"""

import os
from types import SimpleNamespace

import torch
from torch.nn.functional import cross_entropy, dropout
from torch_geometric.data import HeteroData
from torch_geometric.datasets import OGB_MAG
from torch_geometric.nn import RGCNConv, SAGEConv
from torch_geometric.transforms import ToUndirected

PARAMS = {
    "typed": False,
    "hidden": 64,
    "dropout": 0.5,
    "lr": 0.005,
    "amp": False,  # bfloat16
    "scale": 0.01,
    "root": os.environ.get("OGB_ROOT", "data"),
}
VARIANTS = {"typed-eager": {"compile": False, "typed": True}, "typed": {"typed": True}}
NODES = {"paper": 736389, "author": 1134649, "institution": 8740, "field_of_study": 59965}
EDGES = {
    ("author", "affiliated_with", "institution"): 1043998,
    ("author", "writes", "paper"): 7145660,
    ("paper", "cites", "paper"): 5416271,
    ("paper", "has_topic", "field_of_study"): 7505078,
}
FEATURES, CLASSES = 128, 349


class RGCN(torch.nn.Module):
    def __init__(self, ctx, others, relations):
        super().__init__()
        self.dropout = ctx.dropout
        self.papers = torch.nn.Linear(FEATURES, ctx.hidden)
        self.others = torch.nn.Embedding(others, ctx.hidden)  # only papers have features
        layer = TypedConv if ctx.typed else RGCNConv
        self.first = layer(ctx.hidden, ctx.hidden, relations)
        self.second = layer(ctx.hidden, CLASSES, relations)

    def forward(self, x, *edges):
        """The edges are `edge_index, edge_type`, or one index for each relation."""
        papers, x = len(x), torch.cat([self.papers(x), self.others.weight])
        x = dropout(self.first(x, *edges).relu(), self.dropout, self.training)
        return self.second(x, *edges)[:papers]


class TypedConv(torch.nn.Module):
    """What RGCNConv computes, over edges that were separated beforehand."""

    def __init__(self, inputs, outputs, relations):
        super().__init__()
        self.relations = torch.nn.ModuleList(
            SAGEConv(inputs, outputs, bias=False, root_weight=False) for _ in range(relations)
        )
        self.root = torch.nn.Linear(inputs, outputs)

    def forward(self, x, *edges):
        return self.root(x) + sum(layer(x, index) for layer, index in zip(self.relations, edges, strict=True))


def setup(ctx):
    data = load(ctx)
    relations, nodes = len(data.edge_types), data.num_nodes
    papers = data["paper"].to(ctx.device)
    train = papers.train.nonzero()[:, 0]  # indices: with a mask, every step would wait for the number of its rows
    whole = data.to_homogeneous(node_attrs=[], dummy_values=False)  # papers come first: they are the first type
    edges = [whole.edge_index.to(ctx.device), whole.edge_type.to(ctx.device)]
    if ctx.typed:
        edges = [edges[0][:, edges[1] == relation] for relation in range(relations)]
    model = RGCN(ctx, nodes - len(papers.x), relations).to(ctx.device)
    compiled = ctx.compile(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=ctx.lr)

    def step():
        model.train()
        optimizer.zero_grad()
        with torch.autocast(papers.x.device.type, torch.bfloat16, enabled=ctx.amp):
            out = compiled(papers.x, *edges)
            loss = cross_entropy(out[train].float(), papers.y[train])
        loss.backward()
        optimizer.step()
        return loss.detach()

    @torch.no_grad()
    def infer():
        model.eval()
        return compiled(papers.x, *edges)

    def evaluate():
        right = infer().argmax(-1) == papers.y
        return {"test accuracy": float(right[papers.test].float().mean())}

    return SimpleNamespace(step=step, infer=infer, evaluate=evaluate)


def load(ctx):
    if ctx.scale == 1 and os.path.exists(os.path.join(ctx.root, "mag")):
        ctx.note(f"real ogbn-mag from {ctx.root}")
        data = OGB_MAG(ctx.root)[0]
        data["paper"].train, data["paper"].test = (data["paper"][f"{part}_mask"] for part in ("train", "test"))
    else:
        ctx.note(f"generated graph with the statistics of ogbn-mag at scale {ctx.scale:g}")
        data = generate(ctx.scale)
    return ToUndirected(merge=False)(data)


def generate(scale):
    """Every node has a subject; links mostly stay within it and prefer popular nodes; a paper's words hint at it."""
    draw = torch.Generator().manual_seed(0)
    data = HeteroData()
    count = {name: max(int(nodes * scale), 50) for name, nodes in NODES.items()}
    subject = {name: torch.randint(CLASSES, (nodes,), generator=draw).sort().values for name, nodes in count.items()}
    for name, nodes in count.items():
        data[name].num_nodes = nodes
    for (start, relation, end), known in EDGES.items():
        links = max(int(known * scale), 200)
        source = torch.randint(count[start], (links,), generator=draw)
        size = subject[end].bincount(minlength=CLASSES)
        near = (size.cumsum(0) - size)[subject[start][source]]
        near = near + (size[subject[start][source]] * torch.rand(links, generator=draw) ** 2).long()
        far = (count[end] * torch.rand(links, generator=draw) ** 2).long()
        target = torch.where(torch.rand(links, generator=draw) < 0.5, near, far).clamp(max=count[end] - 1)
        data[start, relation, end].edge_index = torch.stack([source, target])
    paper, y = data["paper"], subject["paper"]
    paper.x = torch.randn(len(y), FEATURES, generator=draw)
    paper.x += 0.2 * torch.randn(CLASSES, FEATURES, generator=draw)[y]
    paper.y, chance = y, torch.rand(len(y), generator=draw)
    paper.train, paper.test = chance < 0.85, chance > 0.94
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
