"""In the form of PyTorch's tutorial on compiling the optimizer: the whole step is one decorated function."""

import argparse

import torch
from steplog import StepLog
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=300)
parser.add_argument("--backend", default="inductor")
args = parser.parse_args()
torch.manual_seed(0)
model = nn.Sequential(*[nn.Linear(32, 32, bias=False) for _ in range(4)])
opt = torch.optim.Adam(model.parameters(), lr=torch.tensor(0.01))
sched = torch.optim.lr_scheduler.LinearLR(opt, total_iters=5)


@torch.compile(backend=args.backend, fullgraph=False)
def train_step(x, y):
    opt.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    opt.step()
    return loss.detach()


log = StepLog()
for _ in range(args.steps):
    x = torch.randn(24, 32)
    loss = train_step(x, x.flip(1))
    sched.step()
    log(loss)
