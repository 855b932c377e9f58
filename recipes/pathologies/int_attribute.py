"""Recompilation by a number that a module stores: Dynamo treats a module's integers as constants.

Here the model counts its steps, in order to weight neighbours a little more with each. `before` recompiles in every
step, until Dynamo gives up. If the number is an argument (`after`), it is generalised at its second value; as a tensor,
it is never a constant.
"""

from types import SimpleNamespace

import torch
from torch.nn.functional import cross_entropy
from torch_geometric.nn import SAGEConv

PARAMS = {"count": "attribute", "nodes": 1000, "hidden": 64, "lr": 0.01}
VARIANTS = {
    "before": {"count": "attribute"},
    "after": {"count": "argument"},
    "after-tensor": {"count": "tensor"},
}
FEATURES, CLASSES = 32, 8


class Annealed(torch.nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.steps = 0
        self.first = SAGEConv(FEATURES, hidden)
        self.second = SAGEConv(hidden, CLASSES)
        self.alone = torch.nn.Linear(hidden, CLASSES)

    def forward(self, x, edge_index, steps=None):
        steps = self.steps if steps is None else steps
        x = self.first(x, edge_index).relu()
        return self.second(x, edge_index) * steps / (steps + 10) + self.alone(x) * 10 / (steps + 10)


def setup(ctx):
    ctx.note(f"a generated graph of {ctx.nodes} nodes")
    draw = torch.Generator().manual_seed(0)
    y = torch.randint(CLASSES, (ctx.nodes,), generator=draw).to(ctx.device)
    x = torch.randn(ctx.nodes, FEATURES, generator=draw).to(ctx.device)
    x[:, :CLASSES] += torch.nn.functional.one_hot(y, CLASSES)
    edge_index = torch.randint(ctx.nodes, (2, 8 * ctx.nodes), generator=draw).to(ctx.device)
    model = Annealed(ctx.hidden).to(ctx.device)
    compiled = ctx.compile(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=ctx.lr)
    steps, counted = 0, torch.zeros((), device=ctx.device)

    def step():
        nonlocal steps
        steps += 1
        counted.add_(1)  # a new tensor made from a number would be copied to the device in each step
        if ctx.count == "attribute":
            model.steps = steps
        given = {"argument": [steps], "tensor": [counted]}.get(ctx.count, [])
        optimizer.zero_grad()
        loss = cross_entropy(compiled(x, edge_index, *given), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return SimpleNamespace(step=step)


if __name__ == "__main__":
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    ctx = SimpleNamespace(**PARAMS, device=device, seed=0, compile=lambda module=None, **_: module, note=print)
    torch.manual_seed(ctx.seed)
    training = setup(ctx)
    for count in range(1, 31):
        loss = training.step()
        if count % 10 == 0:
            print(f"step {count}  loss {loss:.4f}")
