"""In the form of pytorch/examples' regression: a polynomial, plain gradient descent, no module and no optimizer."""

import argparse
from itertools import count

import torch
import torch.nn.functional as F
from steplog import StepLog

POLY_DEGREE = 4
torch.manual_seed(0)
W_target = torch.randn(POLY_DEGREE, 1) * 5
b_target = torch.randn(1) * 5


def make_features(x):
    """Builds features i.e. a matrix with columns [x, x^2, x^3, x^4]."""
    x = x.unsqueeze(1)
    return torch.cat([x**i for i in range(1, POLY_DEGREE + 1)], 1)


def f(x):
    """Approximated function."""
    return x.mm(W_target) + b_target.item()


def get_batch(batch_size=32):
    """Builds a batch i.e. (x, f(x)) pair."""
    x = make_features(torch.randn(batch_size))
    return x, f(x)


parser = argparse.ArgumentParser()
parser.add_argument("--most", type=int, default=500)
parser.add_argument("--compile", action="store_true")
parser.add_argument("--backend", default="inductor")
args = parser.parse_args()
# Define model
fc = torch.nn.Linear(W_target.size(0), 1)
if args.compile:
    fc = torch.compile(fc, backend=args.backend)

log = StepLog()
for batch_idx in count(1):
    batch_x, batch_y = get_batch()
    # Reset gradients
    fc.zero_grad()
    # Forward pass
    output = F.smooth_l1_loss(fc(batch_x), batch_y)
    loss = output.item()
    # Backward pass
    output.backward()
    # Apply gradients
    for param in fc.parameters():
        param.data.add_(-0.1 * param.grad)
    log(loss)
    # Stop criterion
    if loss < 1e-3 or batch_idx >= args.most:
        break
print(f"Loss: {loss:.6f} after {batch_idx} batches")
