"""Scripts in the shapes that people write, with a clock in each: the same statements in every layout."""

import textwrap

HEAD = """\
import asyncio, contextlib, functools, sys, threading, time
import torch
from clocked import clock, step_ended

torch.manual_seed(0)
a, b = torch.randn(400, 400), torch.randn(400, 400)
long, index = torch.randn(400_000), torch.randint(400_000, (80_000,))
model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1))
x = torch.randn(256, 64)
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
STEPS, OUT = 60, sys.argv[1]
"""
# Between two stretches of plain Python is an operator: without one, their split is an estimate before Python 3.12.
STATEMENTS = """\
with clock("product"):
    product = a @ b
with clock("sleep"):
    time.sleep(0.001)
with clock("index"):
    picked = long[index]
with clock("loop"):
    total = 0
    for number in range(30_000):
        total += number
with clock("compare"):
    mask = long > 0
with clock("objects"):
    names = [str(number) for number in range(8_000)]
with clock("in place"):
    picked += 1
    picked *= 0.5
with clock("scalars"):
    for place in range(400):
        total += long[place].item()
with clock("call"):
    largest = torch.sort(long[:20_000]).values
with clock("train"):
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
step_ended(OUT)
"""
MODULE = """\
for step in range(STEPS):
{statements:4}
"""
MAIN = """\
def main():
    a, b = torch.randn(400, 400), torch.randn(400, 400)
    for step in range(STEPS):
{statements:8}


if __name__ == "__main__":
    main()
"""
METHOD = """\
class Trainer:
    def __init__(self, steps):
        self.steps = steps

    def fit(self):
        for step in range(self.steps):
{statements:12}


Trainer(STEPS).fit()
"""
GENERATOR = """\
def steps():
    for step in range(STEPS):
{statements:8}
        yield loss


for loss in steps():
    pass
"""
GUARDED = """\
try:
    with contextlib.suppress(ZeroDivisionError):
        for step in range(STEPS):
            with torch.enable_grad():
{statements:16}
finally:
    pass
"""
ENTERED = """\
def train_step():
{statements:4}


for step in range(STEPS):
    train_step()
"""
NESTED = """\
def repeated(times):
    def around(function):
        @functools.wraps(function)
        def call(*arguments):
            for _ in range(times):
                function(*arguments)

        return call

    return around


def outer():
    @repeated(STEPS)
    def inner(kind):
        match kind:
            case "train":
{statements:16}
            case _:
                raise ValueError(kind)

    inner("train")


outer()
"""
ASYNC = """\
async def train_step():
{statements:4}
    await asyncio.sleep(0)


async def main():
    for step in range(STEPS):
        await train_step()
        with clock("wait"):
            await asyncio.sleep(0.001)


asyncio.run(main())
"""
THREAD = """\
def train():
    for step in range(STEPS):
{statements:8}


worker = threading.Thread(target=train)
worker.start()
worker.join()
"""
# Code that others call: hooks, a function of autograd, a lambda, another file, a library that calls back.
CALLED = """\
import time
from helper import Squared, work
from installed import call_back, heavy


def hook(module, inputs, output):
    with clock("module hook"):
        time.sleep(0.002)


def gradient_hook(gradient):
    with clock("gradient hook"):
        kept = torch.sort(long[:20_000]).values
    return gradient


model[0].register_forward_hook(hook)
model[2].weight.register_hook(gradient_hook)
for step in range(STEPS):
    work(a)
    with clock("library"):
        total = heavy(long)
    with clock("lambda"):
        inverse = call_back(lambda matrix: torch.linalg.inv(matrix[:200, :200]), a)
    with clock("generator expression"):
        total = sum(number * number for number in range(30_000))
    optimizer.zero_grad()
    loss = Squared.apply(model(x)).mean()
    loss.backward()
    optimizer.step()
    step_ended(OUT)
"""
LAYOUTS = {
    "module": MODULE,
    "main": MAIN,
    "method": METHOD,
    "generator": GENERATOR,
    "guarded": GUARDED,
    "entered": ENTERED,
    "nested": NESTED,
    "async": ASYNC,
    "thread": THREAD,
}


def script(layout):
    """The text of the script in that layout."""

    class Indented(str):
        def __format__(self, spaces):
            return textwrap.indent(self, " " * int(spaces)).rstrip("\n")

    return HEAD + LAYOUTS[layout].format(statements=Indented(STATEMENTS))
