"""The tools that run programs, with the program's part stood in for: what is refused, and what is made of its words."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.agent.conftest import Ask
from tracekit.agent.tools import running
from tracekit.capture.audit.auditing import as_json
from tracekit.capture.job import Audit, Row
from tracekit.errors.asking import OutsideOfRootError
from tracekit.errors.capturing import ProgramFailedError

ROW = Row(
    kind="sync", operator="aten::item", file="train.py", line=9, function="train", per_step=2.0, source="x.item()"
)


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the next commands say: code, standard output and standard error; what was run follows."""
    answers: list[Any] = []

    def run(workplace: object, command: list[str], arguments: list[str], seconds: int) -> Any:
        code, out, err = answers.pop(0)
        answers.append([*command, "--", *arguments])
        return subprocess.CompletedProcess(command, code, out, err)

    monkeypatch.setattr(running, "_run", run)
    return answers


def test_an_audit_is_told_line_by_line(tmp_path: Path, below: Ask, said: list[Any]) -> None:
    (tmp_path / "train.py").write_text("")
    said.append((0, as_json(Audit(steps=3, rows=[ROW]), "train.py"), ""))
    answer = below("audit", program="train.py", arguments=["--epochs", "1"])
    assert (answer["steps"], answer["finished"], answer["used"]) == (3, True, True)
    (row,) = answer["rows"]
    assert (row["kind"], row["per_step"]) == ("sync", {"value": 2.0, "unit": "1"})
    assert (row["untrusted"]["file"], row["untrusted"]["line"]) == ("train.py", 9)
    assert said[0][-3:] == ["--", "--epochs", "1"]
    assert answer["next"][0]["arguments"] == {"program": "train.py", "arguments": ["--epochs", "1"]}


def test_a_program_that_fails_is_an_error(tmp_path: Path, below: Ask, said: list[Any]) -> None:
    (tmp_path / "train.py").write_text("")
    said.append((1, "", "Traceback\ntracekit: train.py failed before its steps could be audited.\n"))
    with pytest.raises(ProgramFailedError, match=r"failed before its steps could be audited\.$"):
        below("audit", program="train.py")


def test_a_capture_leads_to_its_overview(below: Ask, said: list[Any]) -> None:
    said.append((0, "eager: 3.1 ms\n", ""))
    answer = below("capture", program="gcn_cora", variants=["eager"], output="new.json")
    assert answer["next"][0]["arguments"] == {"inputs": ["new.json"]}
    assert answer["messages"] == [{"untrusted": {"text": "eager: 3.1 ms"}}]
    assert answer["finished"]
    assert said[0][:2] == ["capture", "gcn_cora"]


def test_a_capture_of_which_a_variant_failed_can_be_asked_about(
    tmp_path: Path, below: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    does_write = True

    def run(*_: object) -> Any:
        if does_write:
            (tmp_path / "new.json").write_text("{}")
        return subprocess.CompletedProcess([], 1, "", "compiled: out of memory\n")

    monkeypatch.setattr(running, "_run", run)
    answer = below("capture", program="gcn_cora", output="new.json")
    assert not answer["finished"]
    assert answer["messages"] == [{"untrusted": {"text": "compiled: out of memory"}}]
    assert answer["next"][0]["arguments"] == {"inputs": ["new.json"]}
    does_write = False
    with pytest.raises(ProgramFailedError, match="out of memory"):  # the file there is of an earlier capture
        below("capture", program="gcn_cora", output="new.json")


@pytest.mark.parametrize("output", ["../run.json", "/tmp/run.json", "a/run.json", "run.py", "-o.json"])
def test_a_capture_writes_in_the_root_only(tmp_path: Path, below: Ask, said: list[Any], output: str) -> None:
    (tmp_path / "train.py").write_text("")
    with pytest.raises(ProgramFailedError, match="output is the name"):
        below("capture", program="train.py", output=output)


@pytest.mark.parametrize("program", ["../train.py", "/usr/bin/env", "https://example.com/train.py"])
@pytest.mark.parametrize("tool", ["audit", "capture"])
def test_only_programs_below_the_root_are_run(below: Ask, said: list[Any], tool: str, program: str) -> None:
    with pytest.raises(OutsideOfRootError):
        below(tool, program=program)
