import torch
from clock import compiled, steps
from torch import nn

torch.manual_seed(0)
NODES, FAN_OUT = 20_000, 10
x, y = torch.randn(NODES, 64), torch.randint(0, 8, (NODES,))
neighbours = torch.randint(0, NODES, (NODES, 25))


class Sage(nn.Module):
    def __init__(self):
        super().__init__()
        self.own, self.mean, self.out = nn.Linear(64, 64), nn.Linear(64, 64), nn.Linear(64, 8)

    def forward(self, nodes, near):
        return self.out((self.own(nodes) + self.mean(near.mean(1))).relu())


net = Sage()
compiled(net)
optimizer = torch.optim.Adam(net.parameters(), 1e-3)
for _ in steps():
    seeds = torch.randint(0, NODES, (1024,))
    near = neighbours[seeds].gather(1, torch.randint(0, 25, (1024, FAN_OUT)))
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(net(x[seeds], x[near]), y[seeds])
    loss.backward()
    optimizer.step()
