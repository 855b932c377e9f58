import torch
from clock import compiled, steps
from torch import nn

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 32, 3, padding=1), nn.Conv2d(32, 64, 3, padding=1)
        self.norms = nn.ModuleList([nn.BatchNorm2d(32), nn.BatchNorm2d(64)])
        self.out = nn.Linear(64, 10)

    def forward(self, x):
        x = nn.functional.max_pool2d(self.norms[0](self.first(x)).relu(), 2)
        return self.out(self.norms[1](self.second(x)).relu().mean((2, 3)))


net = Net()
compiled(net)
optimizer = torch.optim.SGD(net.parameters(), 0.01)
x, y = torch.randn(32, 3, 32, 32), torch.randint(0, 10, (32,))
for _ in steps():
    optimizer.zero_grad()
    with torch.autocast("cpu", torch.bfloat16):
        loss = nn.functional.cross_entropy(net(x), y)
    loss.backward()
    optimizer.step()
