"""Causes planted into training on a CPU, captured as users capture it: found first, with their line and their cost."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tracekit.findings import Diagnosis, diagnose
from tracekit.profile import Profile, open_subject

from .workplace import PYTHON

MS = 1_000_000
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


@dataclass(frozen=True)
class Case:
    """A script and what is to be found: the finding, its line, and what it costs a step."""

    script: str
    finding: str
    line: str  # of the script, or the end of what stands there
    cost_ns: float


CASES = {
    "a sleep": Case(SLEEP, "python_bound", "    time.sleep(0.1)", 100 * MS),
    "a slow loader": Case(LOADER, "dataloader_bound", "", 100 * MS),
}


def captured(folder: Path, script: str) -> tuple[Profile, Diagnosis]:
    (folder / "train.py").write_text(HEAD + script)
    options = ["--variants", "eager", "--passes", "1", "--steps", "4", "--warmup", "4", "-o", "run.json"]
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
    _, found = captured(tmp_path, case.script)
    first = found.findings[0]
    assert found.verdict.id == first.id == case.finding
    assert first.cost_ns == pytest.approx(case.cost_ns, rel=0.1)
    if case.line:
        assert first.where.line is not None
        assert (HEAD + case.script).splitlines()[first.where.line - 1] == case.line
    assert {each.id for each in found.findings} <= {case.finding, "cpu_compute"}  # the work itself is what is left


def test_training_with_nothing_planted_only_computes(tmp_path: Path) -> None:
    _, found = captured(tmp_path, HEALTHY)
    assert {each.id for each in found.findings} <= {"cpu_compute"}
