"""Two linear layers with a graph break between them."""

from types import SimpleNamespace

import torch

PARAMS = {"width": 64}


class TwoLayers(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = torch.nn.Linear(width, width)
        self.second = torch.nn.Linear(width, 1)

    def forward(self, x):
        hidden = self.first(x).relu()
        torch._dynamo.graph_break()
        return self.second(hidden)


def setup(ctx):
    torch.manual_seed(ctx.seed)
    x = torch.randn(128, ctx.width, device=ctx.device)
    model = TwoLayers(ctx.width).to(ctx.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    forward = ctx.compile(model)

    def step():
        optimizer.zero_grad()
        loss = forward(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return SimpleNamespace(step=step)
