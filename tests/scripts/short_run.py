"""A script of a few steps only: it resumes where a checkpoint is present, saves one, and exits by sys.exit."""

import argparse
import sys
from pathlib import Path

import torch
from steplog import StepLog
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=40)
parser.add_argument("--checkpoint", type=Path, default=Path("short_run.pt"))
parser.add_argument("--compile", action="store_true")
parser.add_argument("--backend", default="inductor")
args = parser.parse_args()
torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(6, 12), nn.Linear(12, 1)

    def forward(self, x):
        x = torch.relu(self.first(x))
        if x.sum() > 1e6:  # breaks the graph
            x = x / 2
        return self.second(x)


model = Net()
if args.compile:
    model = torch.compile(model, backend=args.backend)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
begin = 0
if args.checkpoint.exists():
    state = torch.load(args.checkpoint)
    getattr(model, "_orig_mod", model).load_state_dict(state["model"])
    begin = state["step"]
    print(f"resumed at step {begin}")
log = StepLog()
for step in range(begin, begin + args.steps):
    x = torch.randn(5 + step % 3, 6)
    loss = (model(x) - x.sum(dim=1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    log(loss)
    if step % 5 == 4:
        weights = getattr(model, "_orig_mod", model).state_dict()
        torch.save({"model": weights, "step": step + 1}, args.checkpoint)
sys.exit(0 if loss.isfinite() else 1)
