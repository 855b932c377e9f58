"""Scripts as their authors write them, audited: each line that blocks on a GPU is found, and the losses are a CPU's.

A comment says what its statement does in a step: how often, kind, operator.
"""

import ast
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tracekit.capture import process
from tracekit.capture.job import Job

SCRIPTS = Path(__file__).parents[1] / "audited"
_SAYS = re.compile(r"(?:(\d+) )?(sync|copy|mixed|break) (\S+)")
_LOSS = re.compile(r"^loss \S+", re.MULTILINE)

pytestmark = pytest.mark.skipif(not os.environ.get("TRACEKIT_VERIFY"), reason="TRACEKIT_VERIFY is not set: make verify")


@pytest.mark.parametrize("path", sorted(SCRIPTS.glob("*.py")), ids=lambda path: path.stem)
def test_every_line_that_blocks_is_found_and_the_losses_are_those_of_a_plain_run(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    log = tmp_path / "audit.log"
    with process.scratch() as scratch:
        result = process.perform(Job(stage="audit", program=str(path), is_script=True, steps=4), scratch, log, 600)
    assert result.outcome == "ok", result.traceback or result.error
    begins = statements(path.read_text())
    counted: Counter[tuple[int, str, str]] = Counter()
    for row in result.audit.rows:
        assert row.file == str(path), row
        counted[begins[row.line], row.kind, row.operator.removeprefix("aten::")] += row.per_step
    assert counted == expected(path.read_text(), begins)
    plain = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=True, timeout=600)
    losses = _LOSS.findall(log.read_text())
    assert losses == _LOSS.findall(plain.stdout)[: len(losses)]


def expected(text: str, begins: dict[int, int]) -> Counter[tuple[int, str, str]]:
    """What the comments in a script announce."""
    said: Counter[tuple[int, str, str]] = Counter()
    for number, line in enumerate(text.splitlines(), 1):
        for count, kind, operator in (each.groups() for each in _SAYS.finditer(line.partition("  # ")[2])):
            said[begins[number], kind, operator.rstrip(",")] += int(count or 1)
    return said


def statements(text: str) -> dict[int, int]:
    """For each line, the line on which its innermost statement begins."""
    begins: dict[int, int] = {}
    for node in ast.walk(ast.parse(text)):  # outer ones come first
        if isinstance(node, ast.stmt):
            begins.update(dict.fromkeys(range(node.lineno, (node.end_lineno or node.lineno) + 1), node.lineno))
    return begins
