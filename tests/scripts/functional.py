"""In the form of PyTorch's torch.func tutorials: functional_call, grad and vmap; the parameters are updated by hand."""

import argparse

import torch
from steplog import StepLog
from torch import nn
from torch.func import functional_call, grad_and_value, vmap

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=300)
parser.add_argument("--lr", type=float, default=0.05)
args = parser.parse_args()
torch.manual_seed(0)


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))

    def forward(self, x):
        return self.layers(x)


model = MLP()
params = {name: parameter.detach() for name, parameter in model.named_parameters()}
weights = torch.randn(8, 1)


def compute_loss(params, sample, target):
    prediction = functional_call(model, params, (sample.unsqueeze(0),))
    return nn.functional.mse_loss(prediction, target.unsqueeze(0))


per_sample = vmap(grad_and_value(compute_loss), in_dims=(None, 0, 0))
log = StepLog()
for _step in range(args.steps):
    x = torch.randn(16, 8)
    grads, losses = per_sample(params, x, torch.sin(x @ weights))
    norms = torch.stack([each.flatten(1).norm(dim=1) for each in grads.values()]).norm(dim=0)
    scale = (1.0 / (norms + 1e-6)).clamp(max=1.0)  # each sample's gradient is clipped by itself
    params = {
        name: value - args.lr * torch.einsum("n,n...->...", scale, grads[name]) / len(x)
        for name, value in params.items()
    }
    log(losses.mean())
