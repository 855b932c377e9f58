"""`tracekit explain-finding` prints the pages of ids, and `tracekit report` lists the findings that are asked for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.trace.broken_laws import CASES, text_of
from tracekit.cli import main
from tracekit.report.explained import all_pages, choice_of, finding_ids

SAMPLE = str(Path(__file__).resolve().parents[2] / "sample_traces" / "run.json")


def test_without_an_id_it_lists_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain-finding"]) == 0
    listed = {
        line.split()[0] for line in capsys.readouterr().out.splitlines() if line.startswith("  ") and line[2] != " "
    }
    assert listed == {page.id for page in all_pages()}


def test_an_id_of_a_finding_and_a_bucket_has_both_pages(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain-finding", "sync_stall", "two_clocks", "sync_stall"]) == 0
    out = capsys.readouterr().out
    first = [line for line in out.splitlines() if line.startswith(("sync_stall – ", "two_clocks – "))]
    assert len(first) == 3
    assert all(kind in out for kind in ("A finding.", "A bucket of time.", "A law of a trace."))


@pytest.mark.parametrize(
    ("name", "hint"),
    [("sync-stal", "Did you mean sync_stall?"), ("xyzzy", "tracekit explain-finding lists all of them.")],
)
def test_an_unknown_id(name: str, hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain-finding", name]) == 1
    assert capsys.readouterr().err == f"tracekit: {name}: no such finding, law or bucket. {hint}\n"


def test_a_hostile_id_controls_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain-finding", "\x1b[31mred"]) == 1
    assert "\x1b" not in capsys.readouterr().err


def document(capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, Any]:
    assert main(["report", SAMPLE, "--format", "json", *options]) == 0
    result: dict[str, Any] = json.loads(capsys.readouterr().out)
    return result


def test_findings_that_are_ignored_change_no_figure(capsys: pytest.CaptureFixture[str]) -> None:
    whole, part = document(capsys), document(capsys, "--ignore", "cpu_compute")
    assert "choice" not in whole
    assert part["choice"]["ignore"] == ["cpu_compute"]
    of_compiled = [finding["id"] for finding in part["findings"] if finding["variant"] == "compiled"]
    assert of_compiled == ["graph_breaks", "graph_building"]
    unlisted = [finding for finding in whole["findings"] if finding["id"] == "cpu_compute"]
    assert sum(part["choice"]["unlisted"].values()) == len(unlisted)
    assert [finding for finding in whole["findings"] if finding["id"] == "graph_breaks"] == [
        finding for finding in part["findings"] if finding["id"] == "graph_breaks"
    ]
    assert whole["variants"] == part["variants"]
    assert whole["comparison"] == part["comparison"]


def test_the_report_says_how_many_it_leaves_out(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    assert main(["report", SAMPLE, "--select", "graph,cpu", "--ignore", "cpu_compute"]) == 0
    out = capsys.readouterr().out
    assert "--select graph,cpu --ignore cpu_compute leaves out 4 findings; all figures stay the same." in out
    assert "tracekit explain-finding" in out


def test_ids_may_be_given_by_how_they_begin() -> None:
    assert choice_of(["gpu_bound"], []).select == ("gpu_bound_gemm", "gpu_bound_memory_bound", "gpu_bound_other")
    assert choice_of([], ["recompiles"]).ignore == ("recompiles",)
    assert not choice_of([], ["recompiles"]).lists("recompiles")
    assert choice_of([], []).lists(finding_ids()[0])


@pytest.mark.parametrize("option", ["--select", "--ignore"])
def test_an_unknown_id_is_refused_before_anything_is_read(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "no-such-file.json", option, "grap_breaks"]) == 1
    assert capsys.readouterr().err == "tracekit: grap_breaks: no such finding. Did you mean graph_breaks?\n"


def test_the_report_names_the_pages_of_doubts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "trace.json"
    path.write_text(text_of(CASES["two_clocks"].damaged))
    assert main(["report", str(path)]) == 0
    last = capsys.readouterr().out.replace("\n", " ").partition("What these doubts and findings mean")[2]
    ids = last.partition("explain-finding")[2].split()
    assert "two_clocks" in ids
    assert main(["explain-finding", *ids]) == 0
