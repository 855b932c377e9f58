"""Under a capture a script runs as it does without: what Dynamo traces, what Python imports."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import warm

from tests.capture.capturing import perform
from tests.capture.compiling import FORMS, USUAL
from tracekit import run as runs

ROOT = Path(runs.__file__).parents[2]
NAMES = [*FORMS] if os.environ.get("TRACEKIT_VERIFY") else USUAL


@pytest.fixture(scope="module")
def forms(tmp_path_factory):
    """What Dynamo traced of each form of compiling, plainly and in a pass."""
    done = warm.run(["-m", "tests.capture.compiling", str(tmp_path_factory.mktemp("forms")), *NAMES], cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return {name: (plain, captured) for name, plain, captured in map(json.loads, done.stdout.splitlines())}


@pytest.mark.parametrize("name", NAMES)
def test_dynamo_traces_what_it_would_without_us(forms, name):
    plain, captured = forms[name]
    assert plain["traced"], plain
    assert captured["traced"] == plain["traced"]  # the very same code: nothing of ours, and nothing more often
    assert captured["counted"] == plain["counted"]
    assert captured["steps"] == 12


PATHS = """
import json, sys, os
print(json.dumps([sys.path, sys.argv, __file__, __name__, os.environ.get("PYTHONPATH"), sys.flags.safe_path]))
if os.environ.get("ONLY_LOOKS"):
    sys.exit()
import torch
net = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(4):
    net(torch.ones(2, 4)).sum().backward()
    optimizer.step()
"""


@pytest.mark.parametrize(("given", "safe"), [("", True), ("/nowhere/a{sep}/nowhere/b", False)])
def test_python_looks_where_it_would_without_us(tmp_path, monkeypatch, given, safe):
    path = tmp_path / "here" / "train.py"
    path.parent.mkdir()
    path.write_text(PATHS)
    monkeypatch.chdir(tmp_path)
    if given:
        monkeypatch.setenv("PYTHONPATH", given.format(sep=os.pathsep))
    else:
        monkeypatch.delenv("PYTHONPATH", raising=False)
    if safe:
        monkeypatch.setenv("PYTHONSAFEPATH", "1")
    command, environment = [sys.executable, "here/train.py", "-x"], {**os.environ, "ONLY_LOOKS": "1"}
    plain = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    result = perform(tmp_path, "measure", "here/train.py", is_script=True, arguments=["-x"])
    assert result.outcome == "ok", result.error
    assert json.loads((tmp_path / "measure.log").read_text()) == json.loads(plain.stdout)
