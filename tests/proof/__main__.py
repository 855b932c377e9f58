"""Runs the tests behind each claim, and writes docs/proof.json and docs/proof.md: `make proof`.

    python -m tests.proof [--thorough] [--tests FILE] [--page]

The quick set takes some ten minutes on two quiet cores; `--thorough` takes hours: more examples, worlds and captures.
`--tests` takes what a run of all tests recorded, `python -m pytest -p tests.proof.plugin --proof=FILE`, in place of a
run of its own. `--page` runs nothing, and writes the page from the figures of the last run. Exits with 1 if a test
failed.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from tests.proof.claims import CLAIMS, Claim
from tests.proof.ledger import Ledger, Part, outcomes_of, read, write
from tests.proof.page import PAGE, page
from tests.stability.promise import current_version

ROOT = Path(__file__).parents[2]
_PACKAGES = ("torch", "torch-geometric", "numpy", "pyarrow", "hypothesis")
_PART = re.compile(r"^(PASS|FAIL) (\S+) +\d+ s +(.*)$", re.MULTILINE)  # as tests.fakecuda.verify prints its parts
_QUICK_PARTS, _THOROUGH_PARTS = "test_own_log,test_bounds", "test_,gpu-"


def main() -> int:
    """Run what is asked for; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.proof", description=__doc__.partition("\n")[0])
    parser.add_argument("--thorough", action="store_true", help="more examples, worlds and captures: hours")
    parser.add_argument("--tests", type=Path, metavar="FILE", help="what a run of all tests recorded of this commit")
    parser.add_argument("--page", action="store_true", help="write the page from the figures of the last run")
    options = parser.parse_args()
    if not options.page:
        write(run(options.thorough, options.tests))
    ledger = read()
    PAGE.write_text(page(ledger), encoding="utf-8")
    print(f"{PAGE.relative_to(ROOT)} is written; {len(ledger.failed)} failed{': ' if ledger.failed else ''}", end="")
    print(", ".join(ledger.failed))
    return int(bool(ledger.failed))


def run(thorough: bool, recorded: Path | None = None) -> Ledger:
    """Run the tests of all claims, unless a run has recorded them, and what there is of the fake GPU."""
    began = time.monotonic()
    claims = [claim for claim in CLAIMS if thorough or not claim.thorough]
    of_tests = _tests_of(claims, thorough) if recorded is None else json.loads(recorded.read_text(encoding="utf-8"))
    parts, absent = fake_cuda(thorough)
    seconds = time.monotonic() - began + (of_tests["seconds"] if recorded is not None else 0)
    return Ledger(
        set="thorough" if thorough else "quick",
        date=datetime.date.today().isoformat(),
        commit=_git("rev-parse", "--short=8", "HEAD"),
        changed=bool(_git("status", "--porcelain", "--untracked-files=no")),
        seconds=round(seconds),
        versions={"tracekit": current_version(), "python": platform.python_version()}
        | {name: metadata.version(name) for name in _PACKAGES},
        machine=f"{platform.system()} on {os.cpu_count()} cores of {platform.machine()}",
        outcomes=outcomes_of(of_tests["tests"], claims),
        fake_cuda=parts,
        fake_cuda_absent=absent,
    )


def _tests_of(claims: list[Claim], thorough: bool) -> dict[str, Any]:
    """Run the tests of these claims; returns what the plugin says of them."""
    chosen = [test for claim in claims for test in claim.tests]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tests.json"
        command = [sys.executable, "-m", "pytest", "-p", "tests.proof.plugin", "--proof", str(path)]
        command += ["--hypothesis-profile=thorough"] if thorough else []
        environment = {**os.environ, "TRACEKIT_VERIFY": "1"} if thorough else dict(os.environ)
        done = subprocess.run([*command, *chosen], cwd=ROOT, env=environment, check=False)
        if done.returncode not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            sys.exit("The tests did not run to their end, so nothing is written.")
        recorded: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return recorded


def fake_cuda(thorough: bool) -> tuple[list[Part], str]:
    """The parts of `make verify-cuda` that belong to the set, if its downloads are there; or why none ran."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tracekit-fakecuda"
    if not (Path(os.environ.get("FAKECUDA_CACHE") or cache) / "packages").exists():
        return [], "PyTorch's CUDA build is not there: `make verify-cuda` downloads it"
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "tests.fakecuda", "-m", "tests.fakecuda.verify"]
        command += ["--only", _THOROUGH_PARTS if thorough else _QUICK_PARTS, folder]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    print(done.stdout + done.stderr)
    parts = [Part(name, word == "PASS", said) for word, name, said in _PART.findall(done.stdout)]
    return parts, "" if parts else f"it could not be started: {done.stderr.strip().splitlines()[-1:]}"


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
