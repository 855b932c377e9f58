"""Causes planted into training on a CPU, captured as users capture it: found first, with their line and their cost."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from tracekit.findings import Diagnosis, diagnose
from tracekit.profile import Profile, open_subject

from .workplace import PYTHON

pytestmark = pytest.mark.skipif(not os.environ.get("TRACEKIT_VERIFY"), reason="TRACEKIT_VERIFY is not set: make verify")

MS = 1_000_000
LEFT = {"cpu_compute", "python_bound"}  # the work itself, and Python, which takes its share on a busy machine
HEAD = """\
import time
import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)


def train(x):
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()


"""
HEALTHY = "for step in range(40):\n    train(torch.randn(32, 64))\n"
SLEEP = "for step in range(40):\n    train(torch.randn(32, 64))\n    time.sleep(0.1)\n"
LOADER = """\
class Slow(torch.utils.data.Dataset):
    def __len__(self):
        return 40

    def __getitem__(self, index):
        time.sleep(0.1)
        return torch.randn(32, 64)


for batch in torch.utils.data.DataLoader(Slow(), batch_size=None):
    train(batch)
"""
# Every call has another constant and is compiled anew: the span `planted` takes as long as that.
RECOMPILING = """\
import torch

VARIANTS = {"recompiling": {"backend": "eager"}}


class Tagged(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.tag = torch.nn.Linear(64, 8), ""

    def forward(self, x):
        return self.inner(x) * len(self.tag)


def setup(ctx):
    torch._dynamo.config.recompile_limit = 4096
    tagged = Tagged()
    net = ctx.compile(tagged)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)

    def step():
        tagged.tag += "x"
        optimizer.zero_grad()
        with torch.profiler.record_function("planted"):
            y = net(torch.randn(32, 64))
        loss = y.square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step
"""


@dataclass(frozen=True)
class Case:
    """A script and what must be reported: the finding, its line, and its cost per step."""

    script: str
    finding: str
    line: str  # of the script, or the end of its text
    cost_ns: float


CASES = {
    "a sleep": Case(SLEEP, "python_bound", "    time.sleep(0.1)", 100 * MS),
    "a slow loader": Case(LOADER, "dataloader_bound", "        time.sleep(0.1)", 100 * MS),
}


def captured(folder: Path, script: str, variant: str = "eager") -> tuple[Profile, Diagnosis]:
    (folder / "train.py").write_text(script)
    options = ["--variants", variant, "--passes", "1", "--steps", "4", "--warmup", "4", "-o", "run.json"]
    done = subprocess.run(
        [PYTHON, "-m", "tracekit", "capture", "train.py", *options],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (profile,) = open_subject([folder / "run.json"]).profiles
    return profile, diagnose(profile)


@pytest.mark.parametrize("name", CASES)
def test_a_cause_is_found(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    _, diagnosis = captured(tmp_path, HEAD + case.script)
    first = diagnosis.findings[0]
    assert diagnosis.verdict.id == first.id == case.finding
    assert first.cost_ns == pytest.approx(case.cost_ns, rel=0.1)
    if case.line:
        assert first.where.line is not None
        assert (HEAD + case.script).splitlines()[first.where.line - 1] == case.line
    assert {each.id for each in diagnosis.findings} <= {case.finding, *LEFT}


def test_training_with_nothing_planted_only_computes(tmp_path: Path) -> None:
    _, diagnosis = captured(tmp_path, HEAD + HEALTHY)
    assert {each.id for each in diagnosis.findings} <= LEFT


def test_a_recompilation_in_every_step_is_found(tmp_path: Path) -> None:
    profile, diagnosis = captured(tmp_path, RECOMPILING, "recompiling")
    first = diagnosis.findings[0]
    assert diagnosis.verdict.id == first.id == "recompiles"
    trace = profile.trace
    planted = np.flatnonzero(np.array(trace.names, object)[trace.name_codes] == "planted")
    assert first.cost_ns == pytest.approx(trace.dur_ns[planted].sum() / len(trace.steps.issued), rel=0.1)
    assert first.where.line is not None
    assert RECOMPILING.splitlines()[first.where.line - 1] == "    def forward(self, x):"
    assert "self.tag == 'x" in first.title
    assert {each.id for each in diagnosis.findings} <= {"recompiles", *LEFT}
