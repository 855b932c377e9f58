"""Several runs at once, variants that failed, and everything that was measured, in a table."""

import json
import re
import sys
from io import StringIO

import on_screen
import pyarrow.parquet as pq
import pytest
from rich.console import Console
from small import event, op, step, training, write

from tracekit import run as runs
from tracekit.cli import main
from tracekit.faces import Options, text
from tracekit.faces.shared.document import as_document
from tracekit.profile import Missing, open_subject
from tracekit.profile.device import device_name
from tracekit.report import report as make_report
from tracekit.report.outline import outline
from tracekit.run import Measured, Memory, Requested, Run, Traces, Variant
from tracekit.tui.model.selection import Selection


def captured(folder, recipe="gcn", names=("eager", "compiled"), data=None, extra=(), **environment):
    """A run with these variants, and others that are given as they are."""
    (folder / "traces").mkdir(parents=True)
    variants = []
    for k, name in enumerate(names):
        training(folder / "traces" / f"{name}.json", python=40 - 20 * k)
        measured = Measured(
            step_ns=110_000, step_all_ns=[110_000] * 9, spread_ns=1, clock="cuda events", infer_ns=7_000
        )
        variants.append(
            Variant(
                name=name,
                outcome="ok",
                requested=Requested(compile=k > 0),
                traces=Traces(steady=f"traces/{name}.json"),
                measured=measured,
                memory=Memory(host_peak_rss_bytes=1 << 20),
                losses=[1.0, 0.5],
                metrics={"accuracy": 0.75},
            )
        )
    created = "2026-11-21T20:00:00+00:00"
    run = Run(
        created=created, tracekit="0", recipe=recipe, script="r.py", data=data, environment=environment,
        params={"hidden": 64}, variants=[*variants, *extra],
    )  # fmt: skip
    runs.write(run, folder / "run.json")
    return folder / "run.json"


def shown(report, width=160, **options):
    console = Console(width=width, file=StringIO(), markup=False, highlight=False, emoji=False)
    text.show(report, console, Options(**options))
    return console.file.getvalue()


def test_each_run_is_compared_within_itself_and_variants_bear_its_name(tmp_path):
    report = make_report(open_subject([captured(tmp_path / "a", "sales"), captured(tmp_path / "b", "churn")]))
    assert [profile.name for profile in report.profiles] == [
        *("sales:eager", "sales:compiled", "churn:eager", "churn:compiled")
    ]
    assert [(entry.variant, entry.baseline) for entry in report.comparisons] == [
        ("sales:compiled", "sales:eager"),
        ("churn:compiled", "churn:eager"),
    ]
    assert not [note for note in report.notes if note.kind == "warning"]
    document = as_document(report)
    assert document["run"] is None
    assert [run["name"] for run in document["runs"]] == ["sales", "churn"]
    terminal = shown(report)
    assert "sales:compiled takes" in terminal
    assert "churn:compiled takes" in terminal
    for wide in (60, 100):
        assert max(map(len, shown(report, wide).splitlines())) <= wide


def test_runs_of_one_recipe_are_told_apart_by_their_folders_and_other_names_stay(tmp_path):
    one, two = captured(tmp_path / "a", "gcn"), captured(tmp_path / "b", "gcn")
    names = [profile.name for profile in open_subject([one, two]).profiles]
    assert names == ["a:eager", "a:compiled", "b:eager", "b:compiled"]
    other = captured(tmp_path / "c", "gcn", names=("base", "norm"))
    assert [profile.name for profile in open_subject([one, other]).profiles] == ["eager", "compiled", "base", "norm"]


def test_a_baseline_across_runs_is_a_warning_where_recipe_data_or_device_differ(tmp_path):
    one, two = (
        captured(tmp_path / "a", "sales", data="sales of May"),
        captured(tmp_path / "b", "churn", data="churners"),
    )
    report = make_report(open_subject([one, two]), "sales:eager")
    assert [entry.baseline for entry in report.comparisons] == ["sales:eager"] * 3
    said = [note.text for note in report.notes if note.kind == "warning" and note.variants == ("churn:eager",)]
    assert said == [
        "its recipe is not sales:eager's (churn; sales): they may differ for that reason alone.",
        "its data is not sales:eager's (churners; sales of May): they may differ for that reason alone.",
    ]
    assert "its recipe is not sales:eager's" in shown(report)


def test_conditions_that_differ_between_runs_are_shown(tmp_path):
    one, two = captured(tmp_path / "a", torch="2.12", cpu="x"), captured(tmp_path / "b", torch="2.13", cpu="x")
    report = make_report(open_subject([one, two]))
    assert [note.text for note in report.notes if note.kind == "conditions"] == ["torch: 2.12 (a), 2.13 (b)."]


def test_traces_of_two_devices_are_compared_with_a_warning(tmp_path):
    paths = []
    for name, device in (("one", "A100"), ("two", "H100")):
        path = training(tmp_path / f"{name}.json")
        whole = {
            **json.loads(path.read_text()),
            "deviceProperties": [{"id": 0, "name": device}, {"id": 1, "name": device}],
        }
        path.write_text(json.dumps(whole))
        paths.append(path)
    report = make_report(open_subject(paths))
    assert [device_name(profile) for profile in report.profiles] == ["A100", "H100"]
    assert [each["device_name"] for each in as_document(report)["variants"]] == ["A100", "H100"]
    (said,) = (note.text for note in report.notes if note.kind == "warning")
    assert said == "its device is not one's (H100; A100): they may differ for that reason alone."
    assert "A100, H100" in shown(report)


@pytest.mark.parametrize("properties", [None, "A100", [None, 3, {"name": 4}], [{}], {"name": "A100"}])
def test_device_properties_of_any_kind_do_no_harm(tmp_path, properties):
    path = training(tmp_path / "t.json")
    path.write_text(json.dumps({**json.loads(path.read_text()), "deviceProperties": properties}))
    assert device_name(open_subject([path]).profiles[0]) is None


def test_what_failed_stands_with_its_outcome_and_reason(tmp_path):
    failed = [
        Variant(name="large", outcome="oom", error="out of memory", requested=Requested(compile=False)),
        Variant(name="old", outcome="failed", error="it raised", requested=Requested(compile=True)),
    ]
    subject = open_subject([captured(tmp_path / "a", names=("eager",), extra=failed)])
    assert [type(member) is Missing for member in subject.members] == [False, True, True]
    variants = as_document(make_report(subject))["variants"]
    assert [(each["name"], each["outcome"], each["reason"]) for each in variants] == [
        ("eager", "ok", None),
        ("large", "oom", "out of memory"),
        ("old", "error", "it raised"),
    ]
    for each in variants[1:]:
        assert each["trace"] is None
        assert each["steps"] == []
        assert each["mean"] is None
        assert set(each) == set(variants[0])
    terminal = shown(make_report(subject))
    assert "large: oom: out of memory" in terminal
    assert "old: error: it raised" in terminal


def test_a_variant_whose_trace_cannot_be_read_is_there_too(tmp_path):
    path = captured(tmp_path / "a")
    (tmp_path / "a" / "traces" / "compiled.json").write_text("{")
    broken = as_document(make_report(open_subject([path])))["variants"][1]
    assert (broken["name"], broken["outcome"], broken["trace"]) == ("compiled", "error", None)
    assert "PyTorch profiler trace" in broken["reason"]


def test_the_table_of_variants_holds_what_was_measured_in_every_face(tmp_path, capsys):
    failed = Variant(name="large", outcome="oom", error="out of memory", requested=Requested(compile=False))
    path = captured(tmp_path / "a", extra=[failed], torch="2.13")
    assert main(["export", str(path), "-o", str(tmp_path / "out")]) == 0
    rows = pq.read_table(tmp_path / "out" / "variants.parquet").to_pylist()
    assert [row["variant"] for row in rows] == ["eager", "compiled", "large"]
    eager, _, large = rows
    assert (eager["step_ns"], eager["infer_ns"], eager["throughput"]) == (
        110_000.0,
        7_000.0,
        pytest.approx(1e9 / 110_000),
    )
    assert (eager["metric"], eager["metric_value"], eager["losses"]) == ("accuracy", 0.75, [1.0, 0.5])
    assert json.loads(eager["params"]) == {"hidden": 64}
    assert json.loads(eager["environment"]) == {"torch": "2.13"}
    assert (large["outcome"], large["reason"], large["step_ns"]) == ("oom", "out of memory", None)
    variants = as_document(make_report(open_subject([path])))["variants"]
    assert [row["wall_ns"] for row in rows[:2]] == [each["mean"]["wall_ns"] for each in variants[:2]]
    capsys.readouterr()
    for form in ("text", "markdown", "html", "json"):
        assert main(["report", str(path), "--format", form, "--full"]) == 0
        said = capsys.readouterr().out
        assert ("7.00 µs" in said) != (form == "json"), form
        assert re.search("out of memory", said), form
    assert "7.00 µs" in " ".join(on_screen.texts(on_screen.ask(on_screen.opened([path]), Selection("variants"))))


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
    absent = " ".join(brief.split("Not in this run: ")[1].split("Not answered")[0].split())
    for title in ("kernels and copies", "longest gaps", "gathering and scattering", "launches"):
        assert title in absent
    assert "Not answered by what was recorded: graph breaks, fallbacks." in brief
    assert brief.count("the host's view is the same, to the nanosecond") == 1
    assert "What the host does meanwhile" not in brief
    assert brief.count("Python is inferred") == 1
    assert "The trace holds no GPU activity." not in brief
    assert full.count("The trace holds no GPU activity.") == 1


def test_worth_orders_the_sections_between_the_first_and_the_last(tmp_path):
    waiting = [
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
    assert tables["syncs"] == 2
    assert tables["steps"] == 1  # a sentence: its table is shown when all is asked for


@pytest.mark.parametrize("width", ["120", "160"])
def test_the_sample_runs_report_fits_two_screens(capsys, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", width)
    assert main(["report", "sample_traces/run.json"]) == 0
    assert len(capsys.readouterr().out.splitlines()) <= 94  # findings of four variants wrap


@pytest.mark.parametrize("wall", [True, False])
def test_no_two_columns_of_a_table_have_one_heading(tmp_path, wall):
    from tracekit.faces.shared.cells import heading

    path = training(tmp_path / "t.json") if wall else write(tmp_path / "t.json", step(1, 0, 50), op("aten::mm", 1, 9))
    for _, answer in make_report(open_subject([path])).answers:
        heads = [heading(field) for field in answer.table.schema]
        assert len(set(heads)) == len(heads), answer.analysis


def test_of_what_has_no_answer_no_mean_is_claimed(tmp_path):
    launches = [event("cuda_runtime", "cudaLaunchKernel", 10 * k, 10 * k + 2, correlation=k + 1) for k in range(4)]
    cut = write(tmp_path / "cut.json", *(step(k, 10 * k, 10 * k + 9) for k in range(4)), *launches)
    cut.write_text(cut.read_text()[:-30])
    said = shown(make_report(open_subject([cut])))
    assert "mean of" not in said
    assert "none of which can be answered" in said
