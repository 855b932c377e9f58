"""Recompilation by the learning rate: a compiled `optimizer.step` treats a float as a constant.

A scheduler changes it in every step: `before` recompiles each time, until Dynamo gives up. As a tensor (`after`), it is
read when needed. `--param optimizer=adam` does the same with Adam; on CUDA this requires `capturable=True`.
(torch breaks the graph around an optimizer's update twice, on purpose.)
"""

from types import SimpleNamespace

import torch
from torch.nn.functional import cross_entropy
from torch_geometric.nn import SAGEConv

PARAMS = {"tensor_lr": False, "optimizer": "sgd", "nodes": 1000, "hidden": 64, "lr": 0.05}
VARIANTS = {"before": {}, "after": {"tensor_lr": True}}
FEATURES, CLASSES = 32, 8


class SAGE(torch.nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.first = SAGEConv(FEATURES, hidden)
        self.second = SAGEConv(hidden, CLASSES)

    def forward(self, x, edge_index):
        return self.second(self.first(x, edge_index).relu(), edge_index)


def setup(ctx):
    ctx.note(f"a generated graph of {ctx.nodes} nodes")
    draw = torch.Generator().manual_seed(0)
    y = torch.randint(CLASSES, (ctx.nodes,), generator=draw).to(ctx.device)
    x = torch.randn(ctx.nodes, FEATURES, generator=draw).to(ctx.device)
    x[:, :CLASSES] += torch.nn.functional.one_hot(y, CLASSES)
    edge_index = torch.randint(ctx.nodes, (2, 8 * ctx.nodes), generator=draw).to(ctx.device)
    model = SAGE(ctx.hidden).to(ctx.device)
    optimizer = make_optimizer(ctx, model.parameters())
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.99)
    compiled, update = ctx.compile(model), ctx.compile(optimizer.step)

    def step():
        optimizer.zero_grad()
        loss = cross_entropy(compiled(x, edge_index), y)
        loss.backward()
        update()
        scheduler.step()
        return loss.detach()

    return SimpleNamespace(step=step)


def make_optimizer(ctx, parameters):
    lr = torch.tensor(ctx.lr, device=ctx.device) if ctx.tensor_lr else ctx.lr
    if ctx.optimizer == "adam":  # on a CPU, Adam does not accept foreach together with a tensor
        on_gpu = torch.device(ctx.device).type == "cuda"
        return torch.optim.Adam(parameters, lr=lr, foreach=on_gpu or not ctx.tensor_lr, capturable=on_gpu)
    return torch.optim.SGD(parameters, lr=lr)


if __name__ == "__main__":
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    ctx = SimpleNamespace(**PARAMS, device=device, seed=0, compile=lambda module=None, **_: module, note=print)
    torch.manual_seed(ctx.seed)
    training = setup(ctx)
    for count in range(1, 31):
        loss = training.step()
        if count % 10 == 0:
            print(f"step {count}  loss {loss:.4f}")
