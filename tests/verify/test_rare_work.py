"""Scripts that evaluate, save or compute a metric every few steps: the step time is what the script's clock says, and
the report names the line of the rare work.

Other work on the machine disturbs the script's clock, too: it counts the faster half of blocks of whole periods, as a
capture counts the faster half of its passes.
"""

import os
import re
import statistics
import subprocess
import sys

import pytest

from tracekit.capture.harness import capture
from tracekit.capture.options import Options
from tracekit.profile import open_subject
from tracekit.profile.rare_work import rare_work

pytestmark = [
    pytest.mark.alone,
    pytest.mark.skipif(not os.environ.get("TRACEKIT_VERIFY"), reason="TRACEKIT_VERIFY is not set: make verify"),
]

SCRIPT = """
import io
import time
import torch

torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 64))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
inputs, targets = torch.randn(256, 64), torch.randn(256, 64)
held_out = torch.randn(600, 600)


@torch.no_grad()
def evaluate():
    model.eval()
    score = model(inputs).sum() + (held_out @ held_out).sum()  # evaluation
    model.train()
    return score.item()


def save():
    for _ in range(20):
        torch.save(model.state_dict(), io.BytesIO())  # saving


def measure():
    return torch.linalg.svdvals(held_out[:300, :300]).sum().item()  # metric


began = []
for step in range(3001):
    if step >= 200 and step % 100 == 0:
        began.append(time.perf_counter())
    loss = torch.nn.functional.mse_loss(model(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    RARELY
blocks = sorted(end - start for start, end in zip(began, began[1:]))
print("ms a step:", sum(blocks[:14]) / 14 / 100 * 1e3)
"""
RARE = {
    "every 10th step evaluates": ("if step % 10 == 9: evaluate()", {"evaluation": (10, "eval")}),
    "every 5th step saves": ("if step % 5 == 4: save()", {"saving": (5, "saving")}),
    "every 20th step computes a metric": ("if step % 20 == 19: measure()", {"metric": (20, "other")}),
    "evaluates and saves": (
        "if step % 10 == 9: evaluate()\n    if step % 5 == 4: save()",
        {"evaluation": (10, "eval"), "saving": (5, "saving")},
    ),
}


def by_the_clock(path):
    printed = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=True).stdout
    return float(re.search(r"ms a step: (\S+)", printed)[1])


@pytest.mark.parametrize("how", RARE)
def test_a_step_takes_what_the_clock_says(how, tmp_path, record_property):
    rarely, expected = RARE[how]
    path = tmp_path / "train.py"
    path.write_text(SCRIPT.replace("RARELY", rarely))
    clock = [by_the_clock(path)]
    out = tmp_path / "run.json"
    capture(Options(str(path), ("eager",), device="cpu", budget=20.0, out=str(out)))
    clock.append(by_the_clock(path))
    (profile,) = open_subject([out]).profiles
    measured, rare = profile.variant.measured, rare_work(profile)
    quoted = measured.step_ns / 1e6
    record_property("table", ["rare work", {"script": how, "by the clock": clock, "quoted": quoted}])
    assert min(clock) * 0.95 <= quoted <= max(clock) * 1.05
    passes = sorted(each.step_ns / 1e6 for each in measured.counted_passes)
    assert statistics.stdev(passes[: max(2, (len(passes) + 1) // 2)]) <= 0.1 * quoted
    lines = path.read_text().splitlines()
    told = [(lines[each.lines[0].line - 1].partition("# ")[2], each) for each in rare.by_line]
    # Other work on the machine may hold up any line, which has no name here.
    assert {name: (round(each.every), each.phase) for name, each in told if name} == expected
