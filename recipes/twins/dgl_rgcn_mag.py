"""The twin of rgcn_mag.py in DGL: papers, authors, institutions and fields, and eight relations between them.

RelGraphConv multiplies each edge by its relation's weights; `typed` says that the edges are sorted by relation, so that
it does not have to sort them. Messages are averaged within a relation, as in RGCNConv.

The graph is the one that rgcn_mag generates, to the last edge.
"""

from types import SimpleNamespace

import torch
from torch.nn.functional import cross_entropy, dropout
from with_dgl import find_dgl

PARAMS = {"typed": False, "hidden": 64, "dropout": 0.5, "lr": 0.005, "scale": 0.01}
VARIANTS = {"typed-eager": {"compile": False, "typed": True}, "typed": {"typed": True}}
NODES = {"paper": 736389, "author": 1134649, "institution": 8740, "field_of_study": 59965}
EDGES = {
    ("author", "affiliated_with", "institution"): 1043998,
    ("author", "writes", "paper"): 7145660,
    ("paper", "cites", "paper"): 5416271,
    ("paper", "has_topic", "field_of_study"): 7505078,
}
FEATURES, CLASSES = 128, 349


class HeteroData(dict):
    """The container that the PyG recipe fills: `data["paper"].x`, `data["author", "writes", "paper"].edge_index`."""

    def __getitem__(self, key):
        return self.setdefault(key, SimpleNamespace())


class RGCN(torch.nn.Module):
    def __init__(self, ctx, others, relations):
        super().__init__()
        self.dropout, self.typed = ctx.dropout, ctx.typed
        self.papers = torch.nn.Linear(FEATURES, ctx.hidden)
        self.others = torch.nn.Embedding(others, ctx.hidden)  # only papers have features
        layers = find_dgl().nn.pytorch
        self.first = layers.RelGraphConv(ctx.hidden, ctx.hidden, relations)
        self.second = layers.RelGraphConv(ctx.hidden, CLASSES, relations)

    def forward(self, graph, x, relation, share):
        papers, x = len(x), torch.cat([self.papers(x), self.others.weight])
        x = self.first(graph, x, relation, share, presorted=self.typed).relu()
        x = dropout(x, self.dropout, self.training)
        return self.second(graph, x, relation, share, presorted=self.typed)[:papers]


def setup(ctx):
    dgl = find_dgl()
    ctx.note(f"generated graph with the statistics of ogbn-mag at scale {ctx.scale:g}")
    data = generate(ctx.scale)
    paper = SimpleNamespace(
        **{name: part.to(ctx.device) for name, part in vars(data["paper"]).items() if name != "num_nodes"}
    )
    train = paper.train.nonzero()[:, 0]  # indices: with a mask, every step would wait for the number of its rows
    nodes, edges, relation = as_one_graph(data)
    share = 1 / count_within(edges[1], relation, nodes)
    graph = dgl.graph((edges[0], edges[1]), num_nodes=nodes).to(ctx.device)
    relation, share = relation.to(ctx.device), share[:, None].to(ctx.device)
    model = RGCN(ctx, nodes - len(paper.x), 2 * len(EDGES)).to(ctx.device)
    compiled = ctx.compile(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=ctx.lr)

    def step():
        model.train()
        optimizer.zero_grad()
        loss = cross_entropy(compiled(graph, paper.x, relation, share)[train], paper.y[train])
        loss.backward()
        optimizer.step()
        return loss.detach()

    @torch.no_grad()
    def infer():
        model.eval()
        return compiled(graph, paper.x, relation, share)

    def evaluate():
        right = infer().argmax(-1) == paper.y
        return {"test accuracy": float(right[paper.test].float().mean())}

    def graph_size():
        return {"nodes": graph.num_nodes(), "edges": graph.num_edges()}

    return SimpleNamespace(step=step, infer=infer, evaluate=evaluate, graph_size=graph_size)


def as_one_graph(data):
    """The nodes of all types in one numbering, papers first; every relation, followed by every reversed relation."""
    first, nodes = {}, 0
    for name in NODES:
        first[name], nodes = nodes, nodes + data[name].num_nodes
    there = [data[key].edge_index + torch.tensor([[first[key[0]]], [first[key[2]]]]) for key in EDGES]
    every = there + [edges.flip(0) for edges in there]
    return (
        nodes,
        torch.cat(every, 1),
        torch.arange(len(every)).repeat_interleave(torch.tensor([edges.size(1) for edges in every])),
    )


def count_within(target, relation, nodes):
    """For each edge, how many of its relation lead to the same node."""
    pair = relation * nodes + target
    return pair.bincount()[pair].float()


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
