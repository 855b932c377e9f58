"""Compiled, it is slower: each layer breaks the graph."""

import torch
from clock import compiled, steps
from torch import nn

torch.manual_seed(0)


class Broken(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(16, 16) for _ in range(12))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x).relu()
            torch._dynamo.graph_break()
        return x


net = Broken()
compiled(net)
optimizer = torch.optim.SGD(net.parameters(), 1e-3)
x = torch.randn(4, 16)
for _ in steps():
    optimizer.zero_grad()
    loss = net(x).square().mean()
    loss.backward()
    optimizer.step()
