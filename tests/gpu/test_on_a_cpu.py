"""The first run on a GPU, as far as a machine without one can take it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
VERIFY = os.environ.get("TRACEKIT_VERIFY") == "1"


def run(folder, *options):
    command = [sys.executable, "-m", "tests.gpu", str(folder), "--cpu", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    failed = [line for line in lines if line.startswith("FAIL")]
    return done, [line for line in lines if line.startswith("PASS")], failed


def test_known_causes_are_found_where_they_were_put(tmp_path):
    done, passed, failed = run(tmp_path, "--only", "injected")
    assert (done.returncode, failed) == (0, []), done.stdout + done.stderr
    assert {line.split(":")[0] for line in passed} == {"PASS asleep", "PASS tiny", "PASS recompile"}


def test_a_section_that_takes_too_long_or_raises_has_failed(tmp_path, monkeypatch):
    from tests.gpu import claims, sections

    made = claims.Claims(tmp_path, "cpu")
    made.run(sections.Section("no_such_section", 1, "nothing"))
    assert made.failed == 1
    done, passed, _ = run(tmp_path, "--only", "nothing")
    assert (done.returncode, passed) == (1, [])
    assert "no section is named nothing" in done.stderr


@pytest.mark.skipif(not VERIFY, reason="takes minutes: TRACEKIT_VERIFY=1 asks for it")
def test_every_section_that_needs_no_gpu(tmp_path):
    done, _, failed = run(tmp_path)
    assert (done.returncode, failed) == (0, []), done.stdout + done.stderr
