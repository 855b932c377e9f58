"""Nothing helps it: it multiplies large matrices."""

import torch
from clock import compiled, steps
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(1024, 1024), nn.Linear(1024, 1024))
compiled(net)
optimizer = torch.optim.SGD(net.parameters(), 1e-4)
x = torch.randn(128, 1024)
for _ in steps():
    optimizer.zero_grad()
    loss = net(x).square().mean()
    loss.backward()
    optimizer.step()
