"""Lines that keep the GPU busy for milliseconds: are they charged what CUDA events around them say, compiled, too?"""

from pathlib import Path

from tests.gpu.claims import Claims, near
from tests.gpu.running import document, tracekit, variants

# Each part is called, and its backward pass is run, between two events. Products come first: while the GPU computes
# them, the host gets so far ahead that the GPU never waits, and what lies between two events is work alone.
_RECIPE = """
from statistics import median
from types import SimpleNamespace

import torch

VARIANTS = {"eager": {"compile": False}, "compiled": {}}
ROWS, COLUMNS = 16384, 4096


class Products(torch.nn.Module):
    def __init__(self, device):
        super().__init__()
        self.weight = torch.randn(COLUMNS, COLUMNS, device=device) / COLUMNS

    def forward(self, x):
        return x @ self.weight  # planted


class Elements(torch.nn.Module):
    def forward(self, x):
        return (x.sin() * x.cos()).tanh()  # planted


class Gathers(torch.nn.Module):
    def __init__(self, device):
        super().__init__()
        self.rows = torch.randperm(ROWS, device=device)

    def forward(self, x):
        return x.index_select(0, self.rows)  # planted


def setup(ctx):
    source = torch.randn(ROWS, COLUMNS, device=ctx.device)
    gradient = torch.ones_like(source)
    parts = {"Products": Products(ctx.device), "Elements": Elements(), "Gathers": Gathers(ctx.device)}
    compiled = {name: ctx.compile(part) for name, part in parts.items()}
    passed = []

    def step():
        events = [torch.cuda.Event(enable_timing=True) for _ in range(len(compiled) + 1)]
        events[0].record()
        for part, event in zip(compiled.values(), events[1:]):
            x = source.detach().requires_grad_()
            part(x).backward(gradient)
            event.record()
        passed.append(events)
        return source[0, 0]

    def evaluate():
        torch.cuda.synchronize()
        return {
            name: median(events[number].elapsed_time(events[number + 1]) for events in passed)
            for number, name in enumerate(parts)
        }

    return SimpleNamespace(step=step, evaluate=evaluate)
"""
_SECONDS = 100
_APART = 0.05


def check(claims: Claims) -> None:
    """Make one capture; the events are those of its pass for the losses, and the lines those of its traces."""
    folder = claims.folder / "planted_lines"
    folder.mkdir(parents=True, exist_ok=True)
    recipe, run = folder / "planted.py", folder / "run.json"
    recipe.write_text(_RECIPE)
    options = ["--variants", "eager,compiled", "--passes", 1, "--device", claims.device, "-o", run]
    done = tracekit("capture", recipe, *options, seconds=_SECONDS, folder=folder)
    claims.that(run.exists() and not done.returncode, "lines: captured", said=done.stderr[-1500:])
    lines = _planted(recipe)
    seen = _seen(run)
    for name, variant in variants(run).items():
        for part, ms in variant["metrics"].items():
            charged = seen.get((name, lines[part]), 0.0)
            figures = {"line_ms": round(charged, 4), "events_ms": round(ms, 4)}
            claims.timed(near(charged, ms, _APART), f"lines: {part}, {name}", **figures)


def _planted(recipe: Path) -> dict[str, int]:
    """The number of each planted line, by the class that it is in."""
    numbers, name = {}, ""
    for number, line in enumerate(recipe.read_text().splitlines(), start=1):
        if line.startswith("class "):
            name = line.removeprefix("class ").partition("(")[0]
        elif line.endswith("# planted"):
            numbers[name] = number
    return numbers


def _seen(run: Path) -> dict[tuple[str, int], float]:
    """How long the GPU computes for a line, in ms a step, by variant and line."""
    (answer,) = (each for each in document(run)["answers"] if each["analysis"] == "lines")
    columns = [column["name"] for column in answer["columns"]]
    charged: dict[tuple[str, int], float] = {}
    for row in (dict(zip(columns, values, strict=True)) for values in answer["rows"]):
        if (row["view"], row["bucket"]) == ("wall", "gpu_compute") and row["line"] is not None:
            key = row["variant"], row["line"]
            charged[key] = charged.get(key, 0.0) + row["step_ns"] / 1e6
    return charged
