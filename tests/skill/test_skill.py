"""The skill for agents: its format, that every name in it exists, that its commands run, and where it is copied."""

from __future__ import annotations

import argparse
import re
import shlex
import shutil
from pathlib import Path

import pytest
from real import ROOT

from docs.made import references
from tracekit.agent.tools import TOOLS
from tracekit.cli import main
from tracekit.cli.program import VERBS
from tracekit.faces.shared.explain import tokens
from tracekit.report.explained import finding_ids
from tracekit.skill import FILES, HERE, NAME, text

_, FRONT, BODY = text().split("---\n", 2)
COMMANDS = [line.partition("  #")[0].strip() for line in re.findall(r"^\$ (.*)$", BODY, re.MULTILINE)]
RUNNING = ("tracekit audit", "tracekit capture")  # tests/verify runs these
ROWS = re.findall(r"^\| (`[a-z_]+`(?:, `[a-z_]+`)*) \|", BODY, re.MULTILINE)


def test_the_format_is_the_open_one() -> None:
    fields = dict(line.split(": ", 1) for line in FRONT.splitlines())
    assert fields["name"] == NAME
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", NAME)
    assert 0 < len(fields["description"]) <= 1024
    assert ": " not in fields["description"]  # which YAML would take for a key
    assert fields.keys() <= {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
    assert tokens(BODY) < 5000


def test_every_finding_tool_and_verb_that_it_names_exists() -> None:
    named = {name for row in ROWS for name in re.findall(r"`(\w+)`", row)}
    named |= set(re.findall(r"`(gpu_bound_\w+)`", BODY))
    assert len(named) > 15
    assert named <= {*finding_ids()}
    verbs = {*re.findall(r"`tracekit ([a-z][a-z-]+)", BODY), *(command.split()[1] for command in COMMANDS)}
    assert len(verbs) >= 10
    assert verbs <= {verb.name for verb in VERBS}
    for tool in TOOLS:
        assert f"`{tool.name}`" in BODY


def test_the_verbs_that_it_says_take_several_inputs_do_and_the_tool_names_a_baseline() -> None:
    (sentence,) = re.findall(r"`tracekit report`[^.]* take several inputs", BODY)
    named = {name.removeprefix("tracekit ") for name in re.findall(r"`([a-z -]+)`", sentence)}
    assert named == {"report", "explain", "what-if", "sql"}
    for verb in VERBS:
        parser = argparse.ArgumentParser()
        verb.arguments(parser)
        several = [action for action in parser._actions if action.nargs == "+" and "INPUT" in str(action.metavar)]
        assert not (verb.name in named and not several), verb.name
        if f"`tracekit {verb.name}" in BODY and verb.name not in named:
            assert not several, verb.name
    (compare,) = (tool for tool in TOOLS if tool.name == "compare")
    assert "baseline" in compare.input_schema["properties"]


def test_links_lead_to_its_own_files() -> None:
    assert {*re.findall(r"\]\(([^)]+)\)", BODY)} == {*FILES[1:]}


def test_its_references_are_todays() -> None:
    for path, made in references().items():
        assert (HERE / path).read_text(encoding="utf-8") == made, "run: make pages"
    assert {*references()} == {*FILES[1:]}
    assert "](" not in "".join(references().values())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the commands name."""
    folder, samples = tmp_path_factory.mktemp("agent"), ROOT / "sample_traces"
    for place in (folder, folder / "old"):
        shutil.copytree(samples / "h100" / "self_loops", place, dirs_exist_ok=True)
    for name in ("before", "after"):
        shutil.copy(samples / "h100" / "pairs" / f"graph-{name}.json.gz", folder / f"{name}.json.gz")
    return folder


@pytest.mark.parametrize("command", [command for command in COMMANDS if not command.startswith(RUNNING)])
def test_every_command_runs(
    command: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    _, *arguments = shlex.split(command.replace("model.py:", "self_loops.py:"))  # the file of the sample
    assert main(arguments) == 0, capsys.readouterr().err
    assert capsys.readouterr().out


def test_it_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["skill"]) == 0
    assert capsys.readouterr().out == text()


def test_it_is_copied_and_an_earlier_copy_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["skill", "install"]) == 0
    target = tmp_path / ".agents" / "skills" / NAME
    assert sorted(str(path.relative_to(target)) for path in target.rglob("*.md")) == sorted(FILES)
    assert str(Path(".agents", "skills", NAME)) in capsys.readouterr().err
    (target / "SKILL.md").write_text(f"---\nname: {NAME}\ndescription: an earlier one\n---\n")
    assert main(["skill", "install"]) == 0
    assert (target / "SKILL.md").read_text() == text()


@pytest.mark.parametrize("file", FILES)
def test_no_other_file_is_replaced(tmp_path: Path, file: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / NAME / file
    path.parent.mkdir(parents=True)
    path.write_text("mine")
    assert main(["skill", "install", str(tmp_path)]) == 1
    assert "is not tracekit's" in capsys.readouterr().err
    assert path.read_text() == "mine"
    assert [found for found in tmp_path.rglob("*") if found.is_file()] == [path]
