"""A recipe whose lines take time that it measures itself, in the very steps that are traced.

Each stretch between two readings of the clock is one line's, named by its comment; what they took is appended to the
file `truth`, a JSON object a step. `longest` is the line that takes most.
"""

import json
import time
from itertools import pairwise
from types import SimpleNamespace

import torch

PARAMS = {"truth": "", "longest": "sleep", "size": 384}
now = time.time_ns


class Product(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(size, size) / size)

    def forward(self, x):  # product, around it
        return x @ self.weight  # product


class Curve(torch.nn.Module):
    def forward(self, x):  # curve, around it
        return torch.tanh(x).exp().sin()  # curve


def looping(times):
    most = 0
    for number in range(times):
        most = max(most, number)  # loop
    return most


def setup(ctx):
    torch.set_num_threads(1)
    first, second = Product(ctx.size), Curve()
    product, curve = ctx.compile(first), ctx.compile(second)
    x = torch.randn(6 * ctx.size, ctx.size)
    small = torch.randn(ctx.size, ctx.size)
    most = {name: 8 if name == ctx.longest else 1 for name in ("loop", "sleep", "operator")}

    def step():
        x.detach()  # an operator between two stretches of Python: without one their split is an estimate
        at = [now()]
        looping(30_000 * most["loop"])
        x.detach()
        at.append(now())
        time.sleep(0.008 * most["sleep"])  # sleep
        at.append(now())
        for _ in range(most["operator"]):
            small.sort()  # operator
        at.append(now())
        y = product(x)  # product, called
        at.append(now())
        z = curve(y)  # curve, called
        at.append(now())
        loss = z.sum()  # between
        first.weight.grad = None
        at.append(now())
        loss.backward()  # backward
        at.append(now())
        names = ("loop", "sleep", "operator", "product", "curve", "between", "backward")
        told = dict(zip(names, (end - start for start, end in pairwise(at)), strict=True))
        with open(ctx.truth, "a") as file:
            file.write(json.dumps({"start": at[0], **told}) + "\n")
        return loss.detach()

    return SimpleNamespace(step=step)
