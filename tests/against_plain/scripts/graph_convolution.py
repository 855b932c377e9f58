import torch
from clock import compiled, steps
from torch import nn

torch.manual_seed(0)
NODES, EDGES = 3000, 15_000


class Convolution(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)

    def forward(self, x, edges, weight):
        messages = self.linear(x)[edges[0]] * weight[:, None]
        return torch.zeros(NODES, messages.shape[1]).index_add(0, edges[1], messages)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = Convolution(200, 32), Convolution(32, 7)

    def forward(self, x, edges, weight):
        return self.second(self.first(x, edges, weight).relu(), edges, weight)


net = Net()
compiled(net)
optimizer = torch.optim.Adam(net.parameters(), 0.01, weight_decay=5e-4)
x, y, edges = torch.rand(NODES, 200), torch.randint(0, 7, (NODES,)), torch.randint(0, NODES, (2, EDGES))
weight = torch.rand(EDGES)
for _ in steps():
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(net(x, edges, weight), y)
    loss.backward()
    optimizer.step()
