"""Programs whose variants run the same code, or code that is longer by a known share, and the captures of them.

Four recipes and two scripts. A recipe's variants `eager` and `same` are the same code; in the scripts, nothing is
called that torch.compile could compile, so `eager` and `compiled` are.
"""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tracekit.capture.harness import Options, capture
from tracekit.capture.passes import load_average, usable_cores

SIZE = int(os.environ.get("TRACEKIT_VERIFY_SIZE", "60"))  # captures of code against itself; others in proportion
# In a virtual machine, others may have the sibling of a core, which no load average shows: then, the first yardstick
# takes half as long again. Where that is so of more turns, a capture was not taken beside nothing.
SLOW_YARDSTICK, MAX_SLOW_TURNS = 1.28, 1 / 3
BUSY = 2  # processes beside half of the captures
_PRODUCTS = 100  # of matrices in a step: one more is one per cent
_SLEEP_MS = 20.0

_RECIPE = """
import time
import torch
PARAMS = {{"products": {products}, "sleep_ms": {sleep_ms}}}
VARIANTS = {{"same": {{"compile": False}}, {longer}}}
{net}
def setup(ctx):
    net, x = Net(), data()
    optimizer = torch.optim.Adam(net.parameters())
    left, right = torch.randn(2, 160, 160)
    def step():
        optimizer.zero_grad()
        if ctx.sleep_ms:
            time.sleep(ctx.sleep_ms / 1000)
        for _ in range(ctx.products):
            torch.mm(left, right)
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()
    return step
"""
_MLP = """
from torch.nn import Linear, ReLU, Sequential
def Net():
    return Sequential(Linear(64, 256), ReLU(), Linear(256, 256), ReLU(), Linear(256, 8))
def data():
    return torch.randn(512, 64)
"""
_CONVOLUTIONS = """
from torch.nn import Conv2d, ReLU, Sequential
def Net():
    return Sequential(Conv2d(3, 16, 3), ReLU(), Conv2d(16, 32, 3, 2), ReLU(), Conv2d(32, 8, 3))
def data():
    return torch.randn(16, 3, 32, 32)
"""
_ATTENTION = """
def Net():
    return torch.nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True)
def data():
    return torch.randn(8, 64, 64)
"""
_GRAPH = """
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(64, 64)
        self.source, self.target = torch.randint(2000, (2, 20_000))
    def forward(self, x):
        h = self.inner(x)
        return torch.zeros_like(h).index_add(0, self.target, h[self.source])
def data():
    return torch.randn(2000, 64)
"""
_LITTLE = """
def Net():
    return torch.nn.Linear(8, 8)
def data():
    return torch.randn(8, 8)
"""
_SCRIPT = """
import torch
torch.manual_seed(0)
weights = [torch.randn(64, 128, requires_grad=True), torch.randn(128, 128, requires_grad=True)]
optimizer = torch.optim.Adam(weights)
for k in range(100_000):
    x = torch.randn({rows}, 64)
    optimizer.zero_grad()
    (x @ weights[0]).relu().matmul(weights[1]).square().mean().backward()
    optimizer.step()
"""


def recipe(net: str, longer: str = "", products: float = 0, sleep_ms: float = 0.0) -> str:
    """The text of a recipe with that net; `longer` declares a variant."""
    return _RECIPE.format(net=net, longer=longer, products=products, sleep_ms=sleep_ms)


@dataclass(frozen=True)
class Program:
    """The text of a recipe or script, and two variants of it; with `params`, the first is as long as the second."""

    text: str
    variants: tuple[str, str] = ("eager", "same")
    params: Mapping[str, str] = field(default_factory=dict)


ALIKE = {
    "perceptron": Program(recipe(_MLP)),
    "convolutions": Program(recipe(_CONVOLUTIONS)),
    "attention": Program(recipe(_ATTENTION)),
    "message passing": Program(recipe(_GRAPH)),
    "script": Program(_SCRIPT.format(rows=512), ("eager", "compiled")),
    "script, two sizes": Program(_SCRIPT.format(rows="(512, 2048)[k % 2]"), ("eager", "compiled")),
}


def by_products(share: float) -> Program:
    """A recipe, and a variant of it that multiplies so many more matrices."""
    return _longer("products", _PRODUCTS, round(_PRODUCTS * (1 + share)))


def by_sleep(share: float) -> Program:
    """A recipe of which a step sleeps, and a variant that sleeps for so much longer."""
    return _longer("sleep_ms", _SLEEP_MS, _SLEEP_MS * (1 + share))


def _longer(param: str, usual: float, longer: float) -> Program:
    variant = f'"longer": {{"compile": False, "{param}": {longer}}}'
    return Program(recipe(_LITTLE, variant, **{param: usual}), ("eager", "longer"), {param: str(longer)})


def captured(program: Program, folder: Path, variants: tuple[str, ...] = (), **options: object) -> Path:
    """The run file of a capture, with as many threads as there are cores but one."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "program.py").write_text(program.text)
    threads = max((usable_cores() or 2) - 1, 1)
    given = {"device": "cpu", "steps": 8, "threads": threads, "tell": lambda _: None, **options}
    out = folder / "run.json"
    capture(Options(folder / "program.py", variants or program.variants, out=out, **given))  # type: ignore[arg-type]
    return out


@contextmanager
def beside(processes: int) -> Iterator[None]:
    """That many processes that do nothing but compute."""
    running = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


def machine() -> str:
    """`load 2.1 on 2 cores`: what else ran when a figure was taken."""
    load = load_average()
    return f"load {'unknown' if load is None else f'{load:.1f}'} on {usable_cores()} cores"


def slow_turns(run):
    """The share of turns beside which a core had a busy sibling."""
    variants = [variant.measured for variant in run.variants]
    turns = [turn for measured in variants for timed_pass in measured.passes for turn in timed_pass.turns]
    yardsticks_ns = [turn.yardsticks_ns[0] for turn in turns]
    return sum(ns > SLOW_YARDSTICK * min(yardsticks_ns) for ns in yardsticks_ns) / len(turns)
