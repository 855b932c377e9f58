"""Several runs at once, variants that failed, and a table of everything that was measured."""

import json
import re

import on_screen
import pyarrow.parquet as pq
import pytest
from small import training

from tests.report.drawn import shown
from tracekit import run as runs
from tracekit.cli import main
from tracekit.faces.shared.document import as_document
from tracekit.profile import Untraced, open_subject
from tracekit.profile.subject import device_name
from tracekit.report import report as make_report
from tracekit.report.comparability import described
from tracekit.run import Measured, Memory, Pass, Requested, Run, Traces, Turn, Variant
from tracekit.tui.model.selection import Selection


def captured(folder, recipe="gcn", names=("eager", "compiled"), data=None, extra=(), **environment):
    """A run with these variants, and with others that are passed unchanged."""
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
        "its recipe differs from that of sales:eager (churn; sales): that alone may explain a difference in time.",
        "its data differs from that of sales:eager (churners; sales of May): that alone may explain a difference in "
        "time.",
    ]
    assert "its recipe differs from that of sales:eager" in " ".join(shown(report).split())


def test_conditions_that_differ_between_runs_are_shown(tmp_path):
    one, two = captured(tmp_path / "a", torch="2.12", cpu="x"), captured(tmp_path / "b", torch="2.13", cpu="x")
    report = make_report(open_subject([one, two]))
    assert [note.text for note in report.notes if note.kind == "conditions"] == ["torch: 2.12 (a), 2.13 (b)."]


def test_the_conditions_say_what_took_turns_and_why():
    def turns(**more):
        run = Run(created="", tracekit="", recipe="r", script="r.py", **{"variants": [], **more})
        return dict(described(run)).get("taking turns")

    passes = [
        Pass(round=1, started_ns=1, step_ns=9, step_all_ns=[9], turns=[Turn(started_ns=1, steps=1, processor_ns=9)])
    ]
    measured = Measured(step_ns=9, step_all_ns=[9], spread_ns=0, clock="perf_counter", passes=passes)
    lived = Variant(name="eager", outcome="ok", requested=Requested(compile=False), measured=measured)
    assert turns() is None
    assert turns(variants=[lived]) == "blocks of steps"
    assert turns(why_no_turns="a timer runs") == "whole passes, because a timer runs"


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
    assert said == "its device differs from that of one (H100; A100): that alone may explain a difference in time."
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
    assert [type(member) is Untraced for member in subject.members] == [False, True, True]
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
        said = capsys.readouterr().out.replace("\N{NO-BREAK SPACE}", " ")
        assert ("7.00 µs" in said) != (form == "json"), form
        assert re.search("out of memory", said), form
    assert "7.00 µs" in " ".join(on_screen.texts(on_screen.ask(on_screen.opened([path]), Selection("variants"))))
