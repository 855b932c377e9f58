"""GraphSAGE on an edge list (COO) compared with a sparse matrix (CSR); `--param form=coo|csr|sparse_tensor`.

With an edge list, a message is gathered for every edge, and messages are scattered; a matrix is multiplied without
storing messages. torch_sparse's SparseTensor is the older form of the latter: `--param form=sparse_tensor`, if it is
installed.

The graph is generated: Cora's statistics, `--param scale=10` makes it larger.
"""

import importlib.util
from types import SimpleNamespace

import torch
from torch.nn.functional import cross_entropy
from torch_geometric.data import Data
from torch_geometric.nn import SAGEConv
from torch_geometric.transforms import ToSparseTensor

PARAMS = {"form": "coo", "hidden": 64, "lr": 0.01, "scale": 1.0}
VARIANTS = {
    "csr-eager": {"compile": False, "form": "csr"},
    "csr-compiled": {"form": "csr"},
}


class SAGE(torch.nn.Module):
    def __init__(self, features, hidden, classes):
        super().__init__()
        self.first = SAGEConv(features, hidden)
        self.second = SAGEConv(hidden, classes)

    def forward(self, x, edges):
        return self.second(self.first(x, edges).relu(), edges)


def setup(ctx):
    ctx.note(f"generated graph with Cora's statistics at scale {ctx.scale:g}")
    data = generate(int(2708 * ctx.scale), int(5278 * ctx.scale), 1433, 7).to(ctx.device)
    train = data.train_mask.nonzero()[:, 0]  # indices: with a mask, every step would wait for the number of its rows
    edges = arrange(data, ctx.form)
    model = SAGE(data.num_features, ctx.hidden, 7).to(ctx.device)
    compiled = ctx.compile(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=ctx.lr)

    def step():
        model.train()
        optimizer.zero_grad()
        out = compiled(data.x, edges)
        loss = cross_entropy(out[train], data.y[train])
        loss.backward()
        optimizer.step()
        return loss.detach()

    @torch.no_grad()
    def infer():
        model.eval()
        return compiled(data.x, edges)

    def evaluate():
        right = infer().argmax(-1) == data.y
        return {"test accuracy": float(right[data.test_mask].float().mean())}

    return SimpleNamespace(step=step, infer=infer, evaluate=evaluate)


def arrange(data, form):
    """The same edges: pairs of source and target, or a matrix with a row for each target."""
    if form == "coo":
        return data.edge_index
    if form == "csr":
        return ToSparseTensor(layout=torch.sparse_csr)(data.clone()).adj_t
    if importlib.util.find_spec("torch_sparse") is None:
        raise SystemExit("form=sparse_tensor needs torch_sparse, which is not installed; form=csr does not need it")
    return ToSparseTensor()(data.clone()).adj_t


def generate(nodes, pairs, features, classes):
    """A graph with long-tailed degrees, neighbours mostly of the same class, and features that only hint at the
    class."""
    draw = torch.Generator().manual_seed(0)
    y = (classes * torch.rand(nodes, generator=draw) ** 1.2).long().sort().values  # large and small classes
    size = y.bincount(minlength=classes)
    first = size.cumsum(0) - size
    source = torch.randint(nodes, (pairs,), generator=draw)
    stranger = torch.randint(nodes, (pairs,), generator=draw)
    label = y[torch.where(torch.rand(pairs, generator=draw) < 0.75, source, stranger)]
    target = first[label] + (size[label] * torch.rand(pairs, generator=draw) ** 3).long()  # popular nodes come first
    x = torch.randn(nodes, features, generator=draw) / features**0.5
    x += torch.randn(classes, features, generator=draw)[y] * 2.5 / features
    order = torch.randperm(nodes, generator=draw)
    train = torch.cat([order[y[order] == label][:20] for label in range(classes)])
    test = order[~torch.isin(order, train)][:1000]
    masks = [torch.zeros(nodes, dtype=torch.bool).index_fill(0, part, True) for part in (train, test)]
    both = torch.cat([torch.stack([source, target]), torch.stack([target, source])], 1)
    return Data(x=x, y=y, edge_index=both, train_mask=masks[0], test_mask=masks[1])


if __name__ == "__main__":
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    ctx = SimpleNamespace(**PARAMS, device=device, seed=0, compile=lambda module, **_: module, note=print)
    torch.manual_seed(ctx.seed)
    training = setup(ctx)
    for epoch in range(1, 101):
        loss = training.step()
        if epoch % 20 == 0:
            print(f"epoch {epoch:3d}  loss {loss:.4f}  test accuracy {training.evaluate()['test accuracy']:.3f}")
