"""What an agent may run, run: the tools audit and capture, and the commands of the skill that run a program."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.agent.conftest import asked
from tests.capture.small_scripts import script
from tests.skill.test_skill import COMMANDS, RUNNING
from tracekit.agent.inputs import Workplace

LOOP = """
device = "cuda" if torch.cuda.is_available() else "cpu"
net.to(device)
optimizer = torch.optim.Adam(net.parameters())
for _ in range(steps):
    optimizer.zero_grad()
    loss = loss_of(net, torch.randn(6, 4, device=device))
    loss.backward()
    optimizer.step()
    print(loss.item())
"""

pytestmark = pytest.mark.skipif(not os.environ.get("TRACEKIT_VERIFY"), reason="TRACEKIT_VERIFY is not set: make verify")


@pytest.fixture
def train(tmp_path: Path) -> Path:
    return script(tmp_path, LOOP)


def test_an_audit_names_the_line_that_waits(train: Path) -> None:
    answer = asked(Workplace(train.parent), "audit", program=train.name)
    line = train.read_text().splitlines().index("    print(loss.item())") + 1
    assert answer["finished"]
    assert answer["used"]
    assert line in [row["untrusted"]["line"] for row in answer["rows"] if row["kind"] == "sync"]


def test_a_capture_can_be_asked_about(train: Path) -> None:
    workplace = Workplace(train.parent)
    answer = asked(workplace, "capture", program=train.name, variants=["eager"], steps=3)
    (call,) = answer["next"]
    overview = asked(workplace, call["tool"], **call["arguments"])
    assert [variant["outcome"] for variant in overview["variants"]] == ["ok"]
    assert overview["variants"][0]["unprofiled_step"]["value"] > 0


@pytest.mark.parametrize("command", [command for command in COMMANDS if command.startswith(RUNNING)])
def test_the_commands_of_the_skill_run(command: str, train: Path) -> None:
    _, *arguments = shlex.split(command)
    arguments = [sys.executable, "-m", "tracekit", *arguments]
    ran = subprocess.run(arguments, cwd=train.parent, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
