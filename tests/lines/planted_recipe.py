"""A recipe that measures how long its own lines take, in the same steps that are traced.

Each stretch between two readings of the clock belongs to one line, named by its comment; the durations are appended to
the file `truth`, one JSON object per step. `longest` is the line that takes `times` as long as it otherwise would.
"""

import json
import time
from itertools import pairwise
from types import SimpleNamespace

import torch

PARAMS = {"truth": "", "longest": "sleep", "times": 8, "size": 384}
NAMES = ("loop", "sleep", "operator", "item", "product", "curve", "curve, backward", "product, backward")
now = time.time_ns


class Product(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(size, size) / size)

    def forward(self, x):  # product, defined
        return x @ self.weight  # product


class Curve(torch.nn.Module):
    def forward(self, x):  # curve, defined
        return torch.tanh(x).exp().sin()  # curve


def looping(values):
    most = 0
    for number in range(30_000):  # loop, head
        most = max(most, number, *values)  # loop
    return most


def setup(ctx):
    torch.set_num_threads(1)
    product, curve = ctx.compile(Product(ctx.size)), ctx.compile(Curve())
    x = torch.randn(6 * ctx.size, ctx.size)
    ones = torch.ones_like(x)
    small = torch.randn(320, 320)
    times = {name: ctx.times if name == ctx.longest else 1 for name in NAMES}
    values = range(20 * times["loop"] - 19)

    def step():
        x.detach()  # an operator between two stretches of Python: without one their split is an estimate
        at = [now()]
        looping(values)
        x.detach()
        at.append(now())
        time.sleep(0.008 * times["sleep"])  # sleep
        at.append(now())
        for _ in range(times["operator"]):
            small.sort()  # operator
        at.append(now())
        for _ in range(times["item"]):
            small.sort().values.sum().item()  # item
        at.append(now())
        y = product(x)  # product, called
        at.append(now())
        z = curve(y)  # curve, called
        at.append(now())
        (slope,) = torch.autograd.grad(z, y, ones)  # curve, backward
        at.append(now())
        y.backward(slope)  # product, backward
        at.append(now())
        took = dict(zip(NAMES, (end - start for start, end in pairwise(at)), strict=True))
        with open(ctx.truth, "a") as file:
            file.write(json.dumps({"start": at[0], **took}) + "\n")
        return z.detach()[0, 0]

    return SimpleNamespace(step=step)
