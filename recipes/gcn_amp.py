"""A GCN on Cora, full batch, in mixed precision: float16 with a gradient scaler, bfloat16 without one.

`fp32`, `fp16` and `bf16` train eagerly; variants that end in `-compiled` are compiled. Cora is read from
`--param root=DIR` (default: $CORA_ROOT, else `data`); without it, a graph of the same statistics is generated, and the
run says so.

On a GPU with tensor cores, wide layers gain most (`--param hidden=512`); on a CPU, bfloat16 is only faster with AMX.
"""

import os
from types import SimpleNamespace

import torch
from torch.nn.functional import cross_entropy, dropout
from torch_geometric.data import Data
from torch_geometric.datasets import Planetoid
from torch_geometric.nn import GCNConv
from torch_geometric.transforms import GCNNorm, NormalizeFeatures

PARAMS = {
    "amp": "bf16",
    "hidden": 64,
    "dropout": 0.5,
    "lr": 0.01,
    "weight_decay": 5e-4,
    "root": os.environ.get("CORA_ROOT", "data"),
}
VARIANTS = {
    "fp32": {"compile": False, "amp": "fp32"},
    "fp16": {"compile": False, "amp": "fp16"},
    "bf16": {"compile": False, "amp": "bf16"},
    "fp32-compiled": {"amp": "fp32"},
    "fp16-compiled": {"amp": "fp16"},
    "bf16-compiled": {"amp": "bf16"},
}
TYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


class GCN(torch.nn.Module):
    def __init__(self, ctx, features, classes):
        super().__init__()
        self.dropout = ctx.dropout
        self.first = GCNConv(features, ctx.hidden, normalize=False)
        self.second = GCNConv(ctx.hidden, classes, normalize=False)

    def forward(self, x, edge_index, edge_weight):
        x = self.first(dropout(x, self.dropout, self.training), edge_index, edge_weight).relu()
        return self.second(dropout(x, self.dropout, self.training), edge_index, edge_weight)


def setup(ctx):
    data, classes = load(ctx)
    train = data.train_mask.nonzero()[:, 0]  # indices: with a mask, every step would wait for the number of its rows
    kind = data.x.device.type
    model = GCN(ctx, data.num_features, classes).to(ctx.device)
    compiled = ctx.compile(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=ctx.lr, weight_decay=ctx.weight_decay)
    scaler = torch.amp.GradScaler(kind, enabled=ctx.amp == "fp16")  # keeps small gradients above the smallest float16

    def forward():
        with torch.autocast(kind, TYPES[ctx.amp], enabled=ctx.amp != "fp32"):
            return compiled(data.x, data.edge_index, data.edge_weight).float()

    def step():
        model.train()
        optimizer.zero_grad()
        loss = cross_entropy(forward()[train], data.y[train])
        scaler.scale(loss).backward()
        scaler.step(optimizer)  # skipped if a gradient overflowed, which takes a wait for the device in each step
        scaler.update()
        return loss.detach()

    @torch.no_grad()
    def infer():
        model.eval()
        return forward()

    def evaluate():
        right = infer().argmax(-1) == data.y
        return {"test accuracy": float(right[data.test_mask].float().mean())}

    return SimpleNamespace(step=step, infer=infer, evaluate=evaluate)


def load(ctx):
    if os.path.exists(os.path.join(ctx.root, "Cora", "raw", "ind.cora.test.index")):
        ctx.note(f"real Cora from {ctx.root}")
        data = NormalizeFeatures()(Planetoid(ctx.root, "Cora")[0])
    else:
        ctx.note("generated graph with Cora's statistics")
        data = generate(2708, 5278, 1433, 7)
    return GCNNorm()(data).to(ctx.device), 7


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
