"""docs/agents.md and what is said about the server against the code."""

from __future__ import annotations

import json
import re

import pytest
from real import ROOT

from tests.agent.conftest import Ask
from tracekit.agent import answers, budget, inputs
from tracekit.agent.tools import TOOLS
from tracekit.agent.tools.query import MOST_ROWS
from tracekit.base.disclosure import confidential
from tracekit.cli import main
from tracekit.confidential import Confidential

PAGE = (ROOT / "docs" / "agents.md").read_text()


def test_the_page_lists_every_tool() -> None:
    assert re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE) == [tool.name for tool in TOOLS]
    assert len([tool for tool in TOOLS if not tool.runs]) + 1 <= 7  # and capture
    for tool in TOOLS:
        (row,) = re.findall(rf"^\| `{tool.name}` \|.*$", PAGE, re.MULTILINE)
        assert ("--allow-run" in row) == tool.runs


@pytest.mark.parametrize(
    "stated",
    [
        f"{budget.DEFAULT:,} bytes of JSON",
        f"more than {budget._WIDTHS[0]} letters",
        f"at most {MOST_ROWS} rows",
        "keeps the last four inputs open",
        "four digits after the point",
    ],
)
def test_its_figures_are_those_of_the_code(stated: str) -> None:
    assert stated in " ".join(PAGE.split())
    assert (inputs._MOST_OPEN, answers._DIGITS) == (4, 4)


def test_its_configuration_is_json_and_its_command_exists() -> None:
    (block,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    (server,) = json.loads(block)["mcpServers"].values()
    assert server["args"][0] == "mcp"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--max-bytes", "500"], "No answer fits into 500 bytes"),
        (["--root", "missing"], "missing: no such file or folder"),
        (["--confidential", "--allow-run"], "leave out --allow-run"),
    ],
)
def test_wrong_options_end_with_a_sentence(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("mcp", reason="needs the extra mcp")
    assert main(["mcp", *arguments]) == 1
    assert sentence in capsys.readouterr().err


def test_without_the_sdk_the_sentence_says_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "mcp", None)
    monkeypatch.delitem(__import__("sys").modules, "tracekit.agent.server", raising=False)
    assert main(["mcp"]) == 1
    assert "needs the package mcp" in capsys.readouterr().err


def test_names_of_the_user_can_be_hidden(below: Ask) -> None:
    with confidential(Confidential(())):
        texts = [
            budget.text_of(below(tool, inputs=["sample"], **more))
            for tool, more in (("overview", {}), ("findings", {}), ("lines", {}), ("evidence", {"of": "v1.f1"}))
        ]
    assert all("gcn_cora" not in text for text in texts)
    assert "file-1.py" in texts[1]
