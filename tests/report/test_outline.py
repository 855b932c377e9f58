"""The outline of a report: everything once, ordered by worth, and one line for what is absent."""

import sys

import pytest
from small import event, op, step, training, write

from tests.report.drawn import shown
from tracekit.cli import main
from tracekit.profile import open_subject
from tracekit.report import report as make_report
from tracekit.report.outline import outline


def test_things_are_said_once_and_what_is_not_there_in_one_line(tmp_path):
    def cpu(name):
        return write(
            tmp_path / f"{name}.json",
            *(
                event
                for k in range(4)
                for event in (step(k, 100 * k, 100 * k + 90), op("aten::mm", 100 * k, 100 * k + 50))
            ),
        )

    report = make_report(open_subject([cpu("one"), cpu("two")]))
    brief, full = shown(report), shown(report, full=True, rows=sys.maxsize)
    absent = " ".join(brief.split("Does not apply here: ")[1].split("What was recorded")[0].split())
    for title in ("kernels and copies", "longest gaps", "gathering and scattering", "launches"):
        assert title in absent
    assert "Cannot be answered from what was recorded: graph breaks, fallbacks." in brief
    assert brief.count("the host's time is the wall time") == 1
    assert "What the host does during" not in brief
    assert brief.count("Python is inferred") == 1
    assert "The trace holds no GPU activity." not in brief
    assert full.count("The trace holds no GPU activity.") == 1


def test_worth_orders_the_sections_between_the_first_and_the_last(tmp_path):
    waiting = [op("aten::empty", -20, -10)] + [
        each
        for k in range(3)
        for each in (
            step(k, 1000 * k, 1000 * k + 900),
            event("cuda_runtime", "cudaLaunchKernel", 1000 * k + 1, 1000 * k + 5, correlation=k + 1),
            event("kernel", "gemm", 1000 * k + 10, 1000 * k + 40, 7, 0, correlation=k + 1),
            event("cuda_runtime", "cudaDeviceSynchronize", 1000 * k + 20, 1000 * k + 800),
        )
    ]
    report = make_report(open_subject([write(tmp_path / "waits.json", *waiting)]))
    ids = [chapter.id for chapter in outline(report).chapters]
    assert ids[:4] == ["headline", "findings", "wall", "host"]
    assert ids.index("syncs") < ids.index("kernels") < ids.index("notes")
    tables = {chapter.id: len(chapter.entries[0].blocks) for chapter in outline(report).chapters}
    assert tables["gaps"] == 2
    assert tables["steps"] == 1  # only a sentence: its table is shown with --full


@pytest.mark.parametrize("width", ["120", "160"])
def test_the_sample_runs_report_fits_two_screens(capsys, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", width)
    assert main(["report", "sample_traces/run.json"]) == 0
    assert len(capsys.readouterr().out.splitlines()) <= 105  # findings of four variants wrap, at 100 columns


@pytest.mark.parametrize("wall", [True, False])
def test_no_two_columns_of_a_table_have_one_heading(tmp_path, wall):
    from tracekit.faces.shared.cells import heading

    path = training(tmp_path / "t.json") if wall else write(tmp_path / "t.json", step(1, 0, 50), op("aten::mm", 1, 9))
    answers = make_report(open_subject([path])).answers
    assert answers
    for _, answer in answers:
        heads = [heading(field) for field in answer.table.schema]
        assert len(set(heads)) == len(heads), answer.analysis


def test_of_what_has_no_answer_no_mean_is_claimed(tmp_path):
    launches = [event("cuda_runtime", "cudaLaunchKernel", 10 * k, 10 * k + 2, correlation=k + 1) for k in range(4)]
    cut = write(tmp_path / "cut.json", *(step(k, 10 * k, 10 * k + 9) for k in range(4)), *launches)
    cut.write_text(cut.read_text()[:-30])
    said = shown(make_report(open_subject([cut])))
    assert "mean of" not in said
    assert "none of which could be timed" in said
