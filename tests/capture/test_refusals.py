"""What cannot be captured or written is refused with one sentence before anything runs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.capture.capturing import write_earlier
from tracekit import run as runs
from tracekit.capture import environment, preparation
from tracekit.capture.harness import Options, capture, run_path
from tracekit.errors.asking import OutputError, UnknownVariantError
from tracekit.errors.capturing import (
    BadParameterError,
    BrokenSyntaxError,
    NoCompilerError,
    NoSuchDeviceError,
    NoSuchRecipeError,
    NotARecipeError,
    NoTorchError,
    NotPythonError,
    RecipeFailedError,
    UnknownParameterError,
)

ROOT = Path(runs.__file__).parents[2]


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"program": "absent.py"}, NoSuchRecipeError, "absent.py"),
        ({"params": {"width": "1"}}, UnknownParameterError, "broken, hidden, lr, sizes"),
        ({"params": {"hidden": "wide"}}, BadParameterError, "hidden cannot be wide: it must be a whole number"),
        ({"variants": ["fast"]}, UnknownVariantError, "wide-eager"),
        ({"device": "cuda:7"}, NoSuchDeviceError, "cpu"),
        ({"steps": 0}, BadParameterError, "--steps cannot be 0: it must"),
        ({"timeout": 0}, BadParameterError, "--timeout cannot be 0: it must"),
        ({"timeout": float("nan")}, BadParameterError, "--timeout cannot be nan: it must"),
        ({"timeout": float("inf")}, BadParameterError, "--timeout cannot be inf: it must"),
        (
            {"backend": "inductr", "variants": ["eager"]},
            BadParameterError,
            "--backend cannot be inductr: it must be one of .*aot_eager.* inductor",
        ),
        ({"variants": ["compiled:backend=aot"]}, BadParameterError, "^backend cannot be aot: it must"),
        ({"program": "/etc/hostname"}, NotPythonError, "is a .py file"),
        ({"out": "absent/run.json"}, OutputError, "absent"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_runs(recipe, tmp_path, monkeypatch, lines, change, error, said):
    monkeypatch.chdir(tmp_path)
    options = {"program": recipe, "backend": "aot_eager", "tell": lines, **change}
    with pytest.raises(error, match=said):
        capture(Options(**options))
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("kind", ["script", "link", "dangling link", "device", "folder", "pipe"])
def test_what_is_no_run_is_left_where_it_is(recipe, tmp_path, lines, kind):
    file, out = tmp_path / "train.py", tmp_path / "out"
    file.write_text("print(1)")
    match kind:
        case "script":
            out = file
        case "link":
            out.symlink_to(file)
        case "dangling link":
            out.symlink_to(tmp_path / "absent")
        case "device":
            out = Path(os.devnull)
        case "folder":
            out.mkdir()
        case "pipe":
            os.mkfifo(out)
    there = sorted(tmp_path.iterdir())
    with pytest.raises(OutputError, match=str(out)):
        capture(Options(recipe, out=out, tell=lines))
    assert lines == []
    assert sorted(tmp_path.iterdir()) == there
    assert file.read_text() == "print(1)"


def test_a_link_to_a_run_is_followed(tmp_path):
    (tmp_path / "there").mkdir()
    link, out = tmp_path / "run.json", tmp_path / "there" / "best.json"
    write_earlier(out)
    link.symlink_to(out)
    assert run_path(link) == out.resolve()


def test_without_torch_it_says_how_to_get_it(recipe, monkeypatch):
    monkeypatch.setattr(environment, "has_torch", lambda: False)
    with pytest.raises(NoTorchError, match="pip install"):
        capture(Options(recipe))


def test_inductor_without_a_compiler_is_refused(recipe, tmp_path, monkeypatch, lines):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(NoCompilerError, match="no-such-compiler"):
        capture(Options(recipe, ["compiled"], tell=lines))
    preparation.prepare(Options(recipe, ["eager"], tell=lines))  # eager needs none


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("def setup(ctx): ...\ndel setup", NotARecipeError, "no setup"),
        ("def setup(ctx): ...\n1 / 0", RecipeFailedError, "ZeroDivisionError"),
        ("def setup(ctx", BrokenSyntaxError, "is not valid Python"),
    ],
)
def test_a_file_that_is_no_recipe_is_refused(write_recipe, tmp_path, monkeypatch, lines, text, error, said):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=said):
        capture(Options(write_recipe(text), tell=lines))
    assert [*tmp_path.glob("run*")] == []


def test_capture_imports_neither_torch_nor_anything_heavy():
    heavy = "torch numpy pandas pyarrow rich textual"
    line = f"import sys, tracekit.capture.harness; print([name for name in '{heavy}'.split() if name in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", line], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
