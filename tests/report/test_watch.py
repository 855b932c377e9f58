"""The report of a watch: what every face shows of it, with its traces and without."""

import itertools
import json
import random

import pytest
from msgspec.structs import replace
from small import kernel, launch, step
from small import write as write_trace

from tests.faces.formats import TEXTS, written
from tests.watched.written import FACTS, MS, steps, write
from tracekit.base.disclosure import confidential
from tracekit.confidential.inputs import Confidential
from tracekit.errors.reading import WatchAmongOthersError
from tracekit.profile import open_subject
from tracekit.report import report
from tracekit.report.blocks import Sentences, Table

LATE = {"step_ns": 40 * MS, "waited_ns": 41 * MS, "worker": 2}
SLOW = {300: LATE, 800: LATE, 900: {"step_ns": 90 * MS, "compile_ns": 85 * MS, "compiles": 1}}


def _section(opened, name):
    return next(section for section in opened.sections if section.id == name)


def _table(opened, name):
    tables = (block for section in opened.sections for block in section.blocks if isinstance(block, Table))
    return next(block.rows for block in tables if block.name == name).to_pylist()


def _said(opened, name):
    return [line for block in _section(opened, name).blocks if isinstance(block, Sentences) for line in block.lines]


def _trace(folder, after, longest_us=12_000):
    moments = [0, 10_000, 20_000, 20_000 + longest_us]
    events = [
        event
        for number, (begin, end) in enumerate(itertools.pairwise(moments))
        for event in (
            step(after + 1 + number, begin, end),
            launch(begin + 10, begin + 20, number + 1),
            kernel("gemm", begin + 30, begin + 80, number + 1),
        )
    ]
    return write_trace(folder / f"{FACTS.stem}-step{after}-slow-batch.pt.trace.json.gz", *events)


def test_a_watch_without_a_trace_has_a_report(tmp_path):
    write(tmp_path / "watch", steps(1_000, SLOW))
    opened = report(open_subject([tmp_path / "watch"]))
    assert opened.title == "Watch watch"
    lines = _said(opened, "watch")
    assert lines[0].startswith("1,000 steps of train.py on cpu (A Processor) in 10")
    assert "3 steps were slow" in lines[2]
    assert lines[-1] == (
        "Next: find out what is compiled anew, and why, by a capture: tracekit capture /home/ada/secret/train.py"
    )
    assert [(row["cause"], row["steps"]) for row in _table(opened, "watch_causes")] == [
        ("compilation", 1),
        ("late batch", 2),
    ]
    assert next(row["step"] for row in _table(opened, "watch_slow_steps")) == 900
    assert {row["worker"] for row in _table(opened, "watch_slow_steps")} == {None, 2}
    (waits,) = (row for row in _table(opened, "watch_parts") if row["part"] == "waiting for batches")
    assert waits["total_ns"] == 998 * MS // 2 + 2 * 41 * MS


def test_a_quiet_watch_says_so_and_what_to_do(tmp_path):
    path = write(tmp_path / "watch", steps(1_000, {}))
    lines = _said(report(open_subject([path])), "watch")
    assert lines[2:] == [
        "No step after the first 32 was slow.",
        "Next: see where the time of a step goes: tracekit capture /home/ada/secret/train.py",
    ]


def test_of_the_first_steps_it_is_not_said_that_none_was_slow(tmp_path):
    path = write(tmp_path / "watch", steps(20, {0: {"step_ns": 10_000 * MS}}))
    lines = _said(report(open_subject([path])), "watch")
    assert lines[2] == "No step was judged: nothing is said of the first 32."


def test_a_watch_of_no_step_has_a_report(tmp_path):
    write(tmp_path / "watch", [])
    opened = report(open_subject([tmp_path / "watch"]))
    assert _said(opened, "watch")[0] == "No step of train.py on cpu (A Processor) has ended yet."


def test_of_more_slow_steps_than_are_left_only_the_last_are_told(tmp_path):
    source = random.Random(1)
    slow = {number: LATE for number in range(100, 30_000) if source.random() < 0.04}
    path = write(tmp_path / "watch", steps(30_000, slow))
    told = _said(report(open_subject([path])), "watch")[2]
    assert told.startswith("More steps were slow than are left: the last 999 lost 40")
    assert "of the time" not in told


def test_a_trend_is_no_slow_step(tmp_path):
    growing = [
        step._replace(step_ns=step.step_ns + ns, host_ns=step.step_ns + ns)
        for step in steps(1_500, {})
        for ns in [step.number * 5_000]
    ]
    opened = report(open_subject([write(tmp_path / "watch", growing)]))
    assert any("steps had become longer" in line for line in _said(opened, "watch"))
    assert {row["fact"]: row["value"] for row in _table(opened, "watch_facts")}["slow steps left"] == "0"


def test_the_share_of_a_part_is_of_the_steps_in_which_it_was_observed(tmp_path):
    unknown = {"processor_ns": -1, "queued_ns": -1}
    write(tmp_path / "watch", steps(1_000, {number: dict(unknown) for number in range(1_000) if number % 5}))
    opened = report(open_subject([tmp_path / "watch"]))
    (running,) = (row for row in _table(opened, "watch_parts") if row["part"] == "running on a core")
    assert running["share"] == pytest.approx(1, abs=0.01)


def test_what_is_usual_at_its_interval_is_told_once(tmp_path):
    write(tmp_path / "watch", steps(1_500, dict.fromkeys(range(100, 1500, 100), LATE)))
    opened = report(open_subject([tmp_path / "watch"]))
    assert _table(opened, "watch_causes")[0]["steps"] == 3
    (told,) = _said(opened, "watch_causes")
    assert told.startswith("Every 100 steps, one takes up to 50")
    assert "(11 times)" in told
    assert "num_workers" in _said(opened, "watch")[-1]


@pytest.mark.parametrize(("longest_us", "recurs"), [(12_000, False), (55_000, True)])
def test_its_last_traces_are_members_and_say_whether_the_slow_step_recurs(tmp_path, longest_us, recurs):
    write(tmp_path / "watch", steps(1_000, SLOW))
    _trace(tmp_path / "watch", 300, longest_us)
    subject = open_subject([tmp_path / "watch"])
    assert [profile.name for profile in subject.profiles] == ["trace at step 300"]
    opened = report(subject)
    (row,) = _table(opened, "watch_traces")
    assert (row["after"], row["why"], row["steps"], row["recurs"]) == (300, "late batch", 3, recurs)
    assert {"watch", "headline", "findings"} <= {section.id for section in opened.sections}


def test_only_the_first_and_the_last_traces_are_opened_and_none_is_compared(tmp_path):
    write(tmp_path / "watch", steps(1_000, SLOW))
    for after in (100, 300, 500, 800):
        _trace(tmp_path / "watch", after)
    opened = report(open_subject([tmp_path / "watch"]))
    assert [profile.name for profile in opened.profiles] == [f"trace at step {after}" for after in (100, 500, 800)]
    assert opened.comparisons == []
    assert [row["after"] for row in _table(opened, "watch_traces")] == [800, 500, 300, 100]
    assert _said(opened, "watch_traces")[-1] == "1 more trace is not opened here: --full lists the commands."


def test_its_traces_know_what_the_workers_of_its_loaders_recorded(tmp_path):
    name = f"loader-{FACTS.process}-{FACTS.began_ns}"
    write(tmp_path / "watch", steps(200, {30: LATE}), replace(FACTS, loader=name))
    _trace(tmp_path / "watch", 30)
    (profile,) = open_subject([tmp_path / "watch"]).profiles
    assert profile.loader_folder == tmp_path / "watch" / name


def test_a_damaged_trace_does_not_hide_the_watch(tmp_path):
    write(tmp_path / "watch", steps(100, {}))
    (tmp_path / "watch" / f"{FACTS.stem}-step30-signal.pt.trace.json.gz").write_bytes(b"\x1f\x8b")
    opened = report(open_subject([tmp_path / "watch"]))
    assert opened.profiles == []
    assert _said(opened, "watch")


def test_a_watch_is_opened_alone(tmp_path):
    path = write(tmp_path / "watch", steps(100, {}))
    with pytest.raises(WatchAmongOthersError, match="is a watch, which must be opened by itself"):
        open_subject([path, path])


def test_ranks_are_side_by_side(tmp_path):
    facts = replace(FACTS, ranks=3)
    write(tmp_path / "watch", steps(500, {300: {"step_ns": 40 * MS}}), facts)
    write(tmp_path / "watch", steps(500, {300: LATE}, seed=2), replace(facts, rank=1, process=8))
    opened = report(open_subject([tmp_path / "watch"]))
    assert [(row["rank"], row["slow"], row["late"]) for row in _table(opened, "watch_ranks")] == [
        (0, 1, None),
        (1, 1, 1),
    ]
    assert _said(opened, "watch")[-1].startswith("Next: look at rank 1, which came late: tracekit report ")
    notes = [note.text for block in _section(opened, "watch").blocks[1:] for note in block.notes]
    assert notes == ["There is no record of 1 other rank: who came late may be unknown."]


@pytest.mark.parametrize("face", TEXTS)
def test_every_face_shows_it_and_obeys_nothing_that_it_says(tmp_path, face):
    evil = replace(FACTS, script="/x/<script>alert(1)</script>\x1b[31m.py", device_name="**GPU** $x$ \\input{y} <b>")
    write(tmp_path / "watch", steps(1_000, SLOW), evil)
    drawn = _drawn(report(open_subject([tmp_path / "watch"])), tmp_path, face)
    for figure in ("1,000 steps", "3 steps were slow", "late batch"):
        assert figure in drawn.replace("\\,", "").replace("~", " ")
    assert "\x1b" not in drawn
    assert "<script>alert" not in drawn or face in ("text", "json")
    assert "\\input{y}" not in drawn or face != "latex"


@pytest.mark.parametrize("face", ["csv", "parquet", "xlsx"])
def test_a_face_of_tables_has_them(tmp_path, face):
    write(tmp_path / "watch", steps(1_000, SLOW))
    path = written(report(open_subject([tmp_path / "watch"])), tmp_path, face)
    if path.is_dir():
        names = {file.stem for file in path.iterdir()}
        assert {"watch_causes", "watch_slow_steps", "watch_parts", "watch_minutes", "watch_single_steps"} <= names
    assert path.stat().st_size > 1_000 or path.is_dir()


def test_every_table_is_exported_with_what_was_noted_of_each_step(tmp_path):
    write(tmp_path / "watch", steps(2_500, SLOW))
    document = json.loads(_drawn(report(open_subject([tmp_path / "watch"])), tmp_path, "json"))
    rows = {answer["analysis"]: answer["rows"] for answer in document["answers"]}
    assert len(rows["watch_single_steps"]) == 2_500
    assert len(rows["watch_minutes"]) == 2


def test_confidential_hides_the_script_and_the_folder(tmp_path):
    (tmp_path / "secret").mkdir()
    write(tmp_path / "secret" / "watch", steps(1_000, SLOW))
    _trace(tmp_path / "secret" / "watch", 300)
    (tmp_path / "secret" / "watch" / "of train.py.watch").write_bytes(b"torn")
    with confidential(Confidential()):
        opened = report(open_subject([tmp_path / "secret" / "watch"]))
        for face in TEXTS:
            drawn = _drawn(opened, tmp_path, face)
            assert "secret" not in drawn
            assert "train.py" not in drawn
            assert "3 steps were slow" in drawn.replace("~", " ")


def _drawn(opened, folder, face):
    return written(opened, folder, face).read_text()
