"""A run whose profiled passes died is still reported: what was measured, and why nothing else is known."""

import json

import on_screen
import pytest
from msgspec.structs import replace

from tests.report.test_unprofiled_report import measured, reported
from tracekit import load
from tracekit import run as runs
from tracekit.cli import main
from tracekit.faces.shared.document import as_document
from tracekit.profile import open_subject
from tracekit.report import report as make_report
from tracekit.report.sections.headline import headline
from tracekit.run import Effective, Traces
from tracekit.tui.model.selection import Selection

WHY = "profile: killed, perhaps because memory ran out"
STEP = "1 step of Adam, 4 micro-batches (backward passes)"


@pytest.fixture
def died(tmp_path):
    """Write a run in which these variants lost their traces."""
    reported(tmp_path, measured(0.12, 0.125, 0.118, 0.121), measured(0.1, 0.104, 0.099, 0.1, at=50, first=9))
    path = tmp_path / "run.json"
    whole = runs.read(path)

    def write(*names):
        variants = [replace(each, effective=Effective(remarks=["compiled in place: Net"])) for each in whole.variants]
        lost = {"traces": Traces(), "profiled": None, "outcome": "crash", "error": WHY, "step": STEP}
        runs.write(
            replace(whole, variants=[replace(each, **lost) if each.name in names else each for each in variants]), path
        )
        return path

    return write


def test_of_one_variant_the_pace_and_the_reason(died):
    run = runs.read(path := died("eager", "compiled"))
    runs.write(replace(run, variants=run.variants[:1]), path)
    assert headline(make_report(open_subject([path]))) == [
        f"eager takes 121 µs a step unprofiled. Without a trace, it is unknown where its time goes (crash: {WHY})."
    ]


def test_every_face_shows_what_was_measured_and_the_failure(died, capsys):
    path = died("eager", "compiled")
    for face in ("text", "markdown", "html"):
        assert main(["report", str(path), "--format", face, "--no-cache"]) == 0
        said = " ".join(capsys.readouterr().out.split())
        assert "compiled takes 101 µs a step unprofiled, 1.20 × faster than eager" in said
        assert "Where the difference comes from is unknown." in said
        assert f"problem{'</span>' * (face == 'html')}: crash: {WHY}" in said
        assert "9.00 ms" in said  # the first step, of the run's own table
    main(["report", str(path), "--format", "json", "--no-cache"])
    document = json.loads(capsys.readouterr().out)
    eager, compiled = document["variants"]
    assert (eager["outcome"], eager["reason"], eager["trace"], eager["mean"]) == ("crash", WHY, None, None)
    assert compiled["measured"]["step_ns"] == pytest.approx(101_000, rel=0.01)
    assert [entry["unprofiled"]["passes"] for entry in document["comparison"]] == [4]
    table = load(path)["variants"].to_pylist()
    assert [(row["variant"], row["baseline"], bool(row["step_ns"])) for row in table] == [
        ("eager", "eager", True),
        ("compiled", "eager", True),
    ]


@pytest.mark.parametrize(
    ("lost", "sentence"),
    [
        ("eager", "eager takes 121 µs a step unprofiled, 1.20 × slower than compiled"),
        ("compiled", "compiled takes 101 µs a step unprofiled, 1.20 × faster than eager"),
    ],
)
def test_beside_one_with_a_trace_it_has_its_column(died, lost, sentence):
    opened = open_subject([died(lost)])
    report = make_report(opened)
    assert headline(report)[0].startswith(sentence)
    (facts,) = (section for section in report.sections if section.id == "run_facts")
    rows = {row[""]: row for row in facts.blocks[0].rows.to_pylist()}
    assert rows["step, unprofiled"]["eager"].startswith("121 µs")
    assert rows["step, unprofiled"]["compiled"].startswith("101 µs")
    assert rows["step, profiled"][lost] is None
    assert [profile.name for profile in report.profiles] == [name for name in ("eager", "compiled") if name != lost]
    assert on_screen.opened([died(lost)]).report.baseline.name != lost


def test_what_shows_traces_alone_says_where_the_rest_is(died, capsys):
    path = died("eager", "compiled")
    assert main(["lines", str(path)]) == 1
    assert f"holds no trace (eager: crash: {WHY})" in (said := capsys.readouterr().err)
    assert f"tracekit report {path}" in said


def test_what_a_step_is_and_what_is_worth_knowing_are_notes_and_no_warnings(died):
    document = as_document(make_report(open_subject([died("compiled")])))
    (notes,) = (block["notes"] for section in document["sections"] for block in section["blocks"] if "notes" in block)
    assert [(each["variants"], each["text"]) for each in notes if each["kind"] == "remark"] == [
        ([], "compiled in place: Net."),
        (["compiled"], f"a step is {STEP}."),
    ]
    assert [each for each in notes if each["kind"] == "warning"] == []
    (remarks,) = {row["remarks"] for row in load(died())["variants"].to_pylist()}
    assert remarks == "compiled in place: Net."
    said = on_screen.texts(on_screen.ask(on_screen.opened([died()]), Selection("about")))
    assert "remark: compiled in place: Net." in said
