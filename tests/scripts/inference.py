"""No training at all: a model is measured over batches, as benchmarks of inference do."""

import argparse

import torch
from steplog import StepLog
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--batches", type=int, default=300)
parser.add_argument("--compile", action="store_true")
parser.add_argument("--backend", default="inductor")
args = parser.parse_args()
torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(50, 16)
        self.layers = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 50))

    def forward(self, tokens):
        return self.layers(self.embed(tokens).mean(dim=1))


model = Net().eval()
if args.compile:
    model.compile(backend=args.backend)
log = StepLog()
with torch.inference_mode():
    for _ in range(args.batches):
        log(model(torch.randint(50, (32, 20))).logsumexp(dim=1).mean())
