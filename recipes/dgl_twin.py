"""GCN, GraphSAGE, GAT and GIN in DGL, full batch: the twin of the PyG recipes; `--param model=gcn|sage|gat|gin`.

DGL is no dependency: where it cannot be imported, the recipe says what is missing. DGL 1.1.3 trains with today's torch
on a CPU (it wants scipy, and setuptools below 70: give it an environment of its own). DGL calls its own kernels, which
Dynamo does not see through: expect many graphs.

The graph is generated with Cora's statistics; `--param scale=10` makes it larger.
"""

from types import SimpleNamespace

import torch
from torch.nn.functional import cross_entropy, dropout

PARAMS = {"model": "gcn", "hidden": 64, "heads": 8, "dropout": 0.5, "lr": 0.01, "weight_decay": 5e-4, "scale": 1.0}
NODES, PAIRS, FEATURES, CLASSES = 2708, 5278, 1433, 7


class Net(torch.nn.Module):
    def __init__(self, ctx, layers):
        super().__init__()
        self.dropout = ctx.dropout
        self.first = make_layer(ctx, layers, FEATURES, ctx.hidden, ctx.heads)
        self.second = make_layer(ctx, layers, ctx.hidden, CLASSES, 1)

    def forward(self, graph, x):
        x = self.first(graph, dropout(x, self.dropout, self.training)).flatten(1).relu()  # GAT's heads side by side
        return self.second(graph, dropout(x, self.dropout, self.training)).flatten(1)


def make_layer(ctx, layers, inputs, outputs, heads):
    if ctx.model == "sage":
        return layers.SAGEConv(inputs, outputs, "mean")
    if ctx.model == "gat":
        return layers.GATConv(inputs, outputs // heads, heads)
    if ctx.model == "gin":
        return layers.GINConv(torch.nn.Linear(inputs, outputs), "sum", learn_eps=True)
    return layers.GraphConv(inputs, outputs)


def find_dgl():
    try:
        import dgl
        import dgl.nn.pytorch
    except Exception as error:  # a DGL built for another torch fails in ways of its own
        raise SystemExit(f"this recipe needs DGL, which cannot be imported here ({error}): pip install dgl") from None
    return dgl


def setup(ctx):
    dgl = find_dgl()
    ctx.note(f"generated graph with Cora's statistics at scale {ctx.scale:g}; DGL {dgl.__version__}")
    x, y, edges, train, test = (
        part.to(ctx.device) for part in generate(int(NODES * ctx.scale), int(PAIRS * ctx.scale))
    )
    graph = dgl.add_self_loop(dgl.graph((edges[0], edges[1]), num_nodes=len(x)))
    model = Net(ctx, dgl.nn.pytorch).to(ctx.device)
    compiled = ctx.compile(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=ctx.lr, weight_decay=ctx.weight_decay)

    def step():
        model.train()
        optimizer.zero_grad()
        loss = cross_entropy(compiled(graph, x)[train], y[train])
        loss.backward()
        optimizer.step()
        return loss.detach()

    @torch.no_grad()
    def infer():
        model.eval()
        return compiled(graph, x)

    def evaluate():
        return {"test accuracy": float((infer().argmax(-1) == y)[test].float().mean())}

    return SimpleNamespace(step=step, infer=infer, evaluate=evaluate)


def generate(nodes, pairs):
    """Long-tailed degrees, neighbours mostly of one's own class, features that hint at the class and no more."""
    draw = torch.Generator().manual_seed(0)
    y = (CLASSES * torch.rand(nodes, generator=draw) ** 1.2).long().sort().values  # large and small classes
    size = y.bincount(minlength=CLASSES)
    first = size.cumsum(0) - size
    source = torch.randint(nodes, (pairs,), generator=draw)
    stranger = torch.randint(nodes, (pairs,), generator=draw)
    label = y[torch.where(torch.rand(pairs, generator=draw) < 0.75, source, stranger)]
    target = first[label] + (size[label] * torch.rand(pairs, generator=draw) ** 3).long()  # the popular come first
    x = torch.randn(nodes, FEATURES, generator=draw) / FEATURES**0.5
    x += torch.randn(CLASSES, FEATURES, generator=draw)[y] * 2.5 / FEATURES
    order = torch.randperm(nodes, generator=draw)
    train = torch.cat([order[y[order] == label][:20] for label in range(CLASSES)])
    test = order[~torch.isin(order, train)][:1000]
    both = torch.cat([torch.stack([source, target]), torch.stack([target, source])], 1)
    return x, y, both, train, test


if __name__ == "__main__":
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    ctx = SimpleNamespace(**PARAMS, device=device, seed=0, compile=lambda module, **_: module, note=print)
    torch.manual_seed(ctx.seed)
    training = setup(ctx)
    for epoch in range(1, 101):
        loss = training.step()
        if epoch % 20 == 0:
            print(f"epoch {epoch:3d}  loss {loss:.4f}  test accuracy {training.evaluate()['test accuracy']:.3f}")
