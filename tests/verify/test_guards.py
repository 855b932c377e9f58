"""The import contracts work: each violation, made in a copy of the package, fails `lint-imports`."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LINT = Path(sys.executable).with_name("lint-imports")

BREACHES = {
    "a module with no place": ("newcomer.py", "", "Everything points down"),
    "a package with no place": ("newcomer/__init__.py", "", "Everything points down"),
    "an import upwards": ("engine/newcomer.py", "import tracekit.report\n", "Everything points down"),
    "torch outside the capture": (
        "analyses/newcomer.py",
        "import torch\n",
        "Only trainings import torch",
    ),
    "torch, late": ("cli/newcomer.py", "def late():\n    import torch\n", "Only trainings import torch"),
    "Textual below the terminal UI": ("faces/newcomer.py", "import textual\n", "Only the terminal UI imports Textual"),
    "NumPy in the capture": ("capture/newcomer.py", "import numpy\n", "Capture needs torch and msgspec only"),
}


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([LINT, "--no-logo", "--no-cache"], cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "tracekit", tmp_path / "tracekit", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_the_package_as_it_is_keeps_every_contract(copy: Path) -> None:
    outcome = lint(copy)
    assert outcome.returncode == 0, outcome.stdout


@pytest.mark.parametrize("breach", BREACHES)
def test_a_breach_is_caught(copy: Path, breach: str) -> None:
    name, content, contract = BREACHES[breach]
    file = copy / "tracekit" / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(f'"""A newcomer."""\n\n{content}')
    outcome = lint(copy)
    assert outcome.returncode != 0
    assert f"{contract} BROKEN" in outcome.stdout
