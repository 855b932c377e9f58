import torch
from clock import compiled, steps
from torch import nn

torch.manual_seed(0)
make = nn.Sequential(nn.Linear(32, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 784), nn.Tanh())
judge = nn.Sequential(nn.Linear(784, 256), nn.LeakyReLU(0.2), nn.Linear(256, 256), nn.LeakyReLU(0.2), nn.Linear(256, 1))
compiled(make, judge)
of_make, of_judge = (torch.optim.Adam(net.parameters(), 2e-4) for net in (make, judge))
real, one, zero = torch.rand(2048, 784), torch.ones(64, 1), torch.zeros(64, 1)
cost = nn.BCEWithLogitsLoss()
for _ in steps():
    batch = real[torch.randint(0, 2048, (64,))]
    fake = make(torch.randn(64, 32))
    of_judge.zero_grad()
    (cost(judge(batch), one) + cost(judge(fake.detach()), zero)).backward()
    of_judge.step()
    of_make.zero_grad()
    cost(judge(fake), one).backward()
    of_make.step()
