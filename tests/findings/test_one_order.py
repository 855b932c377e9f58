"""Every face lists the same findings in the same order: that of the diagnosis."""

import json
from html import unescape
from pathlib import Path

import pytest
from real import trace_names, trace_path
from small import training

from tests.on_screen import ask, opened, rows, texts
from tests.world.worlds import world
from tracekit.base.names import sanitize
from tracekit.faces import Options, find
from tracekit.faces import json as as_json
from tracekit.findings import Diagnosis, Finding, Verdict, alike
from tracekit.profile import open_subject
from tracekit.report import report
from tracekit.report.sections.findings import cards
from tracekit.tui.model.selection import Selection

SAMPLE = Path(__file__).resolve().parents[2] / "sample_traces" / "run.json"


def same_order_everywhere(paths, monkeypatch):
    """Card by card, what people read is in the order in which programs read it."""
    monkeypatch.setenv("COLUMNS", "2000")
    made = report(open_subject(paths))
    told = [card.headline for card in cards(made.diagnoses).cards]
    document = json.loads(as_json.render(made))
    for name, diagnosis in made.diagnoses.items():
        listed = [entry["headline"] for entry in document["findings"] if entry["variant"] == name]
        assert listed == [finding.headline for finding in diagnosis.told]
        assert [card.headline for card in cards({name: diagnosis}).cards] == listed
    for face in ("text", "markdown"):
        said = plain(str(find(face).draw(made, Options(rows=10_000, full=True))))
        at = said.index("Findings")
        for headline in told:
            at = said.index(plain(headline), at) + 1

    terminal_ui(paths, made)


def terminal_ui(paths, made):
    """Its overview lists the findings as cards in the same order, and the verdict of each variant without any."""
    content = ask(opened(paths, infer_steps=True), Selection("overview"))
    listed = [row["finding"] for sheet in content.sheets if sheet.name == "findings" for row in rows(sheet)]
    assert listed == [sanitize(group.finding.headline) for group in alike(made.diagnoses)]
    said = " ".join(texts(content))
    for diagnosis in made.diagnoses.values():
        assert diagnosis.findings or sanitize(diagnosis.verdict.sentence, 2000) in said


def plain(text):
    return " ".join(unescape(text).replace("\\", "").replace("`", "").split())


@pytest.mark.traces
@pytest.mark.parametrize("name", trace_names())
def test_findings_of_a_real_trace(name, monkeypatch):
    same_order_everywhere([trace_path(name)], monkeypatch)


def test_findings_of_the_sample(monkeypatch):
    same_order_everywhere([SAMPLE], monkeypatch)


@pytest.mark.parametrize("seed", range(20))
def test_findings_of_a_world(seed, tmp_path, monkeypatch):
    same_order_everywhere([world(seed).write(tmp_path)], monkeypatch)


def test_the_terminal_ui_has_the_verdict_of_a_variant_without_findings(tmp_path):
    healthy = training(tmp_path / "healthy.json")
    slow = world(1).write(tmp_path)
    terminal_ui([slow, healthy], report(open_subject([slow, healthy])))


def told_by(**findings):
    return {name: Diagnosis(Verdict("python_bound", "", 0.5), listed) for name, listed in findings.items()}


def test_what_happens_once_comes_after_what_costs_every_step():
    once = Finding("cold_start", "Start-up", 9e6, share=0.9, once=True)
    slow, doubt = Finding("python_bound", "Slow", 1e6, share=0.1), Finding("empty", "Doubt")
    groups = alike(told_by(eager=[doubt, slow, once], compiled=[Finding("gc", "Garbage", 2e6, share=0.2), once]))
    assert [group.finding.headline for group in groups] == ["Doubt", "Garbage", "Slow", "Start-up"]


def test_equal_findings_have_the_costliest_first():
    small, large = (Finding("python_bound", "Slow", cost, share=0.1) for cost in (1e6, 2e6))
    (group,) = alike(told_by(eager=[small], compiled=[large]))
    assert [*group.by_variant] == ["compiled", "eager"]
