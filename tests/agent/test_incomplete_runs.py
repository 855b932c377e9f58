"""Runs in which a variant failed: every tool answers about the others, and says what became of that one."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace
from small import training

from tests.agent.conftest import Ask
from tracekit import run as runs
from tracekit.errors.asking import UnknownReferenceError
from tracekit.run import Requested, Run, Traces, Variant

INPUTS = ["run.json"]


@pytest.fixture(autouse=True)
def run(tmp_path: Path) -> None:
    """The second of three variants ran out of memory before anything was measured."""
    for name in ("eager", "dynamic"):
        training(tmp_path / f"{name}.json")
    variants = [
        Variant(name="eager", outcome="ok", requested=Requested(compile=False), traces=Traces(steady="eager.json")),
        Variant(name="compiled", outcome="oom", error="out of memory", requested=Requested(compile=True)),
        Variant(name="dynamic", outcome="ok", requested=Requested(compile=True), traces=Traces(steady="dynamic.json")),
    ]
    created = "2026-11-21T20:00:00+00:00"
    runs.write(
        Run(created=created, tracekit="0", recipe="net", script="net.py", variants=variants), tmp_path / INPUTS[0]
    )


def test_what_cannot_be_compared_is_not_called_a_single_variant(tmp_path: Path, below: Ask) -> None:
    whole = runs.read(tmp_path / INPUTS[0])
    runs.write(replace(whole, created="2026-11-22T20:00:00+00:00", variants=whole.variants[:2]), tmp_path / INPUTS[0])
    answer = below("compare", inputs=INPUTS)
    assert "comparisons" not in answer
    assert answer["cannot_answer"][-1]["untrusted"]["text"] == "out of memory"
    assert answer["next"][0]["tool"] == "overview"


@pytest.mark.parametrize("tool", ["overview", "findings", "compare", "lines", "query"])
def test_every_tool_answers(below: Ask, tool: str) -> None:
    answer = below(tool, inputs=INPUTS)
    assert answer["next"]
    reasons = {(entry["variant"], entry["untrusted"]["text"]) for entry in answer["cannot_answer"]}
    assert ("v2", "out of memory") in reasons


def test_variants_are_numbered_as_in_the_run(below: Ask) -> None:
    shown = below("overview", inputs=INPUTS)["variants"]
    assert [(variant["variant"], variant["outcome"]) for variant in shown] == [
        ("v1", "ok"),
        ("v2", "oom"),
        ("v3", "ok"),
    ]
    assert {entry["variant"] for entry in below("findings", inputs=INPUTS)["findings"]} == {"v1", "v3"}
    (comparison,) = below("compare", inputs=INPUTS)["comparisons"]
    assert (comparison["variant"], comparison["baseline"]) == ("v3", "v1")


def test_the_one_that_failed_has_no_findings_and_no_events(below: Ask) -> None:
    answer = below("findings", inputs=INPUTS, variant="compiled")
    assert "findings" not in answer
    assert answer["next"] == [
        {"tool": "overview", "arguments": {"inputs": INPUTS}, "why": "what there is of each variant"}
    ]
    with pytest.raises(UnknownReferenceError, match="has no trace"):
        below("evidence", inputs=INPUTS, of="v2.wall")
