"""A recipe small enough to read, one pass of it, and the content of its trace."""

import gzip
import json
import re
from pathlib import Path
from types import SimpleNamespace

from tracekit import run as runs
from tracekit.capture import process
from tracekit.capture.job import Job, PassResult
from tracekit.run import Requested

COMPILED = Requested(compile=True, backend="aot_eager")
_MARKER = re.compile(r"^(.*)_data: .*?compile_id=(\S+)$")
_COMPILE_SPANS = ("dynamo", "entire_backward_compile")

# Sizes change at the seventh step. Where `broken`, an `.item()` breaks the graph and a counter recompiles it.
RECIPE = """
from types import SimpleNamespace
import torch

PARAMS = {"hidden": 8, "lr": 0.01, "sizes": [6], "broken": False}
VARIANTS = {"wide": {"hidden": 16}, "wide-eager": {"hidden": 16, "compile": False}}


class Net(torch.nn.Module):
    def __init__(self, ctx):
        super().__init__()
        self.broken, self.calls = ctx.broken, 0
        self.first, self.second = torch.nn.Linear(4, ctx.hidden), torch.nn.Linear(ctx.hidden, 1)

    def forward(self, x):
        x = torch.nn.functional.dropout(self.first(x).relu(), 0.5, self.training)
        if self.broken:
            self.calls += 1  # a new constant in every step
            x = x * self.calls * x.sum().item()  # breaks here
        return self.second(x)


def setup(ctx):
    ctx.note("random numbers")
    net = ctx.compile(Net(ctx).to(ctx.device))
    optimizer = torch.optim.SGD(net.parameters(), lr=ctx.lr)
    batches = [torch.randn(ctx.sizes[min(at // 6, len(ctx.sizes) - 1)], 4) for at in range(60)]

    def step(x):
        optimizer.zero_grad()
        loss = (net(x) - x.sum(1, keepdim=True)).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return SimpleNamespace(step=step, batches=batches, infer=lambda: net(batches[0]), evaluate=lambda: 0.5)
"""

# Each of its variants trains, except the one that is unsound.
FAILING = """
import torch
PARAMS = {"sound": True}
VARIANTS = {"sound": {"compile": False}, "unsound": {"compile": False, "sound": False}}
def setup(ctx):
    weight = torch.zeros(3, requires_grad=True)
    def step():
        if not ctx.sound:
            raise ValueError("the loss is gone")
        return weight.sum().detach()
    return step
"""


def perform(folder: Path, stage, recipe, timeout=120, **more) -> PassResult:
    """Run one pass in a separate process, as the harness does."""
    job = Job(stage=stage, program=str(recipe), folder=str(folder), **more)
    with process.scratch() as scratch:
        return process.perform(job, scratch, folder / f"{stage}.log", timeout)


def read_trace(path):
    """The trace's steps and compile spans, both in Unix ns."""
    with gzip.open(path) as file:
        trace = json.load(file)
    base = trace["baseTimeNanoseconds"]
    steps, rows = {}, {}
    for event in trace["traceEvents"]:
        if event.get("ph") != "X" or event.get("cat") not in ("cpu_op", "user_annotation"):
            continue
        start = base + round(event["ts"] * 1000)
        end = start + round(event["dur"] * 1000)
        if event["name"].startswith("ProfilerStep#"):
            steps[int(event["name"].partition("#")[2])] = (start, end)
        rows.setdefault(event["tid"], []).append((start, -end, event["name"]))
    spans = sorted(
        (span for thread, row in rows.items() for span in _spans(thread, sorted(row))), key=lambda span: span.start
    )
    return SimpleNamespace(steps=steps, spans=spans, keys=trace)


def _spans(thread, row):
    """The outermost compile spans of one thread, each with the id in its marker."""
    spans = []
    for start, minus_end, name in row:
        inside = spans and start < spans[-1].end
        marker = _MARKER.match(name)
        if inside and marker and marker[1] == spans[-1].name and spans[-1].id is None:
            spans[-1].id = marker[2]
        if not inside and name in _COMPILE_SPANS:
            spans.append(SimpleNamespace(name=name, id=None, thread=thread, start=start, end=-minus_end))
    return spans


def write_earlier(out):
    """Write a run of another day."""
    earlier = runs.Run(
        created="2026-01-01T00:00:00+00:00",
        tracekit="0",
        recipe="old",
        script="old.py",
        variants=[runs.Variant(name="eager", outcome="ok", requested=runs.Requested(compile=False))],
    )
    runs.write(earlier, out)
    return out.read_bytes()


class Lines(list):
    """What the capture printed."""

    def __call__(self, line):
        self.append(line)

    def text(self):
        return "\n".join(self)
