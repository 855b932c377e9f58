"""Whether a file is a script or a recipe, judged by its content."""

from pathlib import Path

import pytest

from tracekit.capture.preparation import is_script
from tracekit.cli import main


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def setup(ctx): ...", False),
        ("setup = lambda ctx: None", False),
        ("from base import setup", False),
        ("def setup(rank, world_size): ...", True),
        ("print('def setup(ctx)')", True),
        ("if True:\n  def train(): ...", True),
    ],
)
def test_a_recipe_defines_setup(tmp_path, source, expected):
    path = tmp_path / "x.py"
    path.write_text(source)
    assert is_script(path) is expected


@pytest.mark.parametrize("given", [[], ["--script"], ["--step-at", "train.py:1"]])
def test_one_that_is_no_valid_python_is_told_its_line(tmp_path, monkeypatch, capsys, given):
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text("import torch\nfor step in range(3)\n    pass\n")
    assert main(["capture", "train.py", *given]) == 1
    assert main(["audit", "train.py", *given]) == 1
    said = capsys.readouterr().err
    assert said.count("train.py:2 is not valid Python (expected ':'). Fix that line; python train.py shows it") == 2
    assert "recipe" not in said
