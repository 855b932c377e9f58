"""Exports of Nsight Systems are read like any other trace."""

import gzip
import json
import sqlite3
import time
from contextlib import closing

import numpy as np
import pytest
from real import trace_path
from small import kernel, launch, step

from tests.trace.nsys_export import in_both, insert, write
from tracekit.cli import main
from tracekit.errors.reading import EmptyTraceError, NotATraceError
from tracekit.profile import open_subject
from tracekit.report import report
from tracekit.trace import Trace
from tracekit.trace.reading.source import traces_in


@pytest.mark.traces
@pytest.mark.parametrize("name", ["leimao_eager_rtx5080", "leimao_cudagraph_manual_rtx5080"])
def test_the_same_recording_in_both_formats_is_told_alike(name, tmp_path):
    with gzip.open(trace_path(name)) as file:
        kineto, nsys = in_both(json.load(file), tmp_path)
    ours, theirs = open_subject([kineto]).profiles[0], open_subject([nsys]).profiles[0]
    assert ours.trace.steps.number == theirs.trace.steps.number
    for view in ("wall", "host"):
        assert np.array_equal(ours.views[view].totals, theirs.views[view].totals), view
        assert np.array_equal(ours.views[view].step_ns, theirs.views[view].step_ns), view
    assert ours.trace.base_ns == theirs.trace.base_ns
    assert ours.trace.gpus[0]["name"] == theirs.trace.gpus[0]["name"]
    diagnoses = [next(iter(report(open_subject([path])).diagnoses.values())) for path in (kineto, nsys)]
    assert diagnoses[0].verdict == diagnoses[1].verdict
    assert len({tuple(finding.headline for finding in diagnosis.findings) for diagnosis in diagnoses}) == 1


@pytest.fixture
def export(tmp_path):
    """Three steps of one kernel each, in µs."""
    events = [
        event
        for k in range(3)
        for event in (
            step(k, 100 * k, 100 * k + 90),
            launch(100 * k + 10, 100 * k + 15, k + 1),
            kernel("gemm", 100 * k + 20, 100 * k + 60, k + 1),
        )
    ]
    for event in events:
        event.setdefault("args", {}).setdefault("device", 0)
    path = tmp_path / "run.sqlite"
    write(path, events, {"baseTimeNanoseconds": 0, "deviceProperties": []})
    return path


def run(path, statement, *rows):
    with closing(sqlite3.connect(path)) as database:
        if rows:
            insert(database, statement, [*rows])
        else:
            database.execute(statement)
        database.commit()


def test_without_operators_it_is_unknown_what_the_host_does(export):
    """`nsys profile` records none unless it is asked to: then no finding blames Python or dispatch."""
    (diagnosis,) = report(open_subject([export])).diagnoses.values()
    assert not {finding.id for finding in diagnosis.all_findings} & {"python_bound", "dispatch_bound"}
    assert "no_operators" in {limitation.id for limitation in Trace.load(export).health}


def test_ranges_called_after_steps_are_steps(export):
    assert Trace.load(export).steps.number == [0, 1, 2]


@pytest.mark.parametrize(
    ("texts", "numbers"),
    [
        (("iteration_7", "iteration_8", "iteration_9"), [7, 8, 9]),
        (("train_step",) * 3, [0, 1, 2]),
        (("epoch 1 batch 4",) * 3, [0, 1, 2]),  # which of the numbers counts cannot be known
        (("footstep", "stepwise", "rebatched"), [0]),  # called after something else: the whole recording is one step
    ],
)
def test_the_many_names_of_steps(export, texts, numbers):
    with closing(sqlite3.connect(export)) as database:
        for k, text in enumerate(texts):
            database.execute("UPDATE NVTX_EVENTS SET text = ?, textId = NULL WHERE start = ?", (text, 100_000 * k))
        database.commit()
    assert Trace.load(export).steps.number == numbers


def test_a_table_that_was_not_recorded_is_missing(export):
    for table in ("CUPTI_ACTIVITY_KIND_MEMCPY", "ThreadNames", "TARGET_INFO_GPU", "TARGET_INFO_SESSION_START_TIME"):
        run(export, f"DROP TABLE {table}")
    run(export, "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN shortName")
    trace = Trace.load(export)
    assert (len(trace.ts_ns), trace.gpus, trace.base_ns) == (9, [], 0)


def test_processes_whose_correlation_ids_recur_are_told_apart(export):
    other = 99 << 24
    run(export, "CUPTI_ACTIVITY_KIND_RUNTIME", (10_000, 15_000, 0, other | 99, 1, 0))
    run(export, "CUPTI_ACTIVITY_KIND_KERNEL", (21_000, 25_000, 1, 1, 7, 1, other, 0, 0))
    trace = Trace.load(export)
    linked = trace.correlation[trace.roles.gpu]
    assert len(set(linked.tolist())) == 4


@pytest.mark.parametrize(
    "row",
    [
        ("soon", 15_000, 0, 1, 1, 0),
        (10_000, None, 0, 1, 1, 0),
        (-5, 15_000, 0, 1, 1, 0),
        (1 << 62, (1 << 62) + 1, 0, 1, 1, 0),
        (b"\x00", b"\xff", 0, 1, 1, 0),
    ],
)
def test_rows_that_make_no_sense_are_left_out_and_counted(export, row):
    run(export, "CUPTI_ACTIVITY_KIND_RUNTIME", row)
    run(export, "NVTX_EVENTS", (*row[:2], 59, "step 9", 1, None, 0))
    trace = Trace.load(export)
    assert len(trace.ts_ns) == 9
    assert trace.lost == (1 if row[1] is None else 2)  # a range without an end is one that was open


@pytest.mark.parametrize("value", ["text", b"\xff\xfe", None, 1 << 61, -1, 2.5])
@pytest.mark.parametrize("column", ["globalTid", "correlationId", "nameId"])
def test_columns_of_other_types_do_no_harm(export, column, value):
    with closing(sqlite3.connect(export)) as database:
        database.execute(f"UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET {column} = ?", (value,))
        database.commit()
    assert report(open_subject([export])).sections


def test_a_damaged_export_is_refused_in_one_sentence(export, capsys):
    data = bytearray(export.read_bytes())
    data[4096:] = b"\x00" * (len(data) - 4096)
    export.write_bytes(data)
    assert main(["report", str(export)]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "tracekit: " in error


def test_what_is_no_export_is_said(tmp_path):
    other, empty, report_ = tmp_path / "other.sqlite", tmp_path / "empty.sqlite", tmp_path / "run.nsys-rep"
    run(other, "CREATE TABLE t (n)")
    run(empty, "CREATE TABLE NVTX_EVENTS (start, end, eventType, text, globalTid, textId)")
    report_.write_bytes(b"QDSTRM")
    with pytest.raises(NotATraceError, match="no export of Nsight Systems"):
        Trace.load(other)
    with pytest.raises(EmptyTraceError):
        Trace.load(empty)
    with pytest.raises(NotATraceError, match=r"`nsys export --type sqlite run.nsys-rep` makes readable"):
        Trace.load(report_)


@pytest.mark.parametrize("ranges", [0, 3])
def test_an_export_without_anything_of_the_gpu_says_how_to_record_it(tmp_path, capsys, ranges):
    path = tmp_path / "os.db"
    run(path, "CREATE TABLE OSRT_API (start, end, eventClass, globalTid, nameId)")
    run(path, "OSRT_API", *((k, k + 1, 27, 1, 1) for k in range(9)))
    if ranges:
        run(path, "CREATE TABLE NVTX_EVENTS (start, end, eventType, text, globalTid, textId)")
        run(path, "NVTX_EVENTS", *((10 * k, 10 * k + 9, 59, "step", 1, None) for k in range(ranges)))
    assert main(["report", str(path)]) == 1
    error = capsys.readouterr().err
    assert "in which nothing of the GPU was recorded" in error
    assert "`nsys profile --trace cuda,nvtx,osrt`" in error
    assert error.count("\n") == 1


def test_every_other_verb_takes_it(export, tmp_path, capsys):
    assert traces_in(export.parent) == [export]
    assert main(["export", str(export), "-o", str(tmp_path / "tables")]) == 0
    assert main(["report", str(export), "-o", str(export)]) == 1
    assert "it is an input" in capsys.readouterr().err
    assert main(["report", str(export), "--format", "perfetto", "-o", str(tmp_path / "out.json.gz")]) == 1
    assert "is not JSON, to which tracks can be added" in capsys.readouterr().err


ENDLESS = "WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n) SELECT x AS start, x AS end FROM n"


@pytest.mark.parametrize(
    "statements",
    [
        pytest.param([f"CREATE VIEW StringIds AS {ENDLESS}"], id="a view is no table"),
        pytest.param(
            [
                f"CREATE VIEW StringIds AS {ENDLESS}",
                "PRAGMA writable_schema = ON",
                "UPDATE sqlite_master SET type = 'table' WHERE name = 'StringIds'",
            ],
            id="a view that says that it is a table",
        ),
        pytest.param(
            [
                "CREATE TABLE StringIds (id INT, value AS (printf('%900000000d', id)))",
                "INSERT INTO StringIds VALUES (1)",
            ],
            id="a column that is computed",
        ),
        pytest.param(["CREATE VIRTUAL TABLE StringIds USING fts5(id, value)"], id="a table with code behind it"),
        pytest.param(
            ["CREATE TABLE StringIds (id, value)", "INSERT INTO StringIds VALUES (1, printf('%50000000d', 1))"],
            id="a value of 50 MB",
        ),
        pytest.param(
            [
                "CREATE TABLE StringIds (id, value)",
                "CREATE TRIGGER t AFTER INSERT ON StringIds BEGIN DELETE FROM NVTX_EVENTS; END",
            ],
            id="a trigger",
        ),
    ],
)
def test_what_a_database_may_hold_besides_takes_no_effect(tmp_path, capsys, statements):
    path = tmp_path / "export.sqlite"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE NVTX_EVENTS (start INT, end INT, eventType INT, text TEXT, globalTid INT)")
        database.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INT, end INT)")
        database.execute("INSERT INTO NVTX_EVENTS VALUES (1, 2, 59, 'x', 1)")
        try:
            for statement in statements:
                database.execute(statement)
        except sqlite3.OperationalError as error:  # without fts5
            pytest.skip(str(error))
        database.commit()
    before = path.read_bytes()
    began = time.monotonic()
    assert main(["report", str(path), "--no-cache"]) in (0, 1)
    assert time.monotonic() - began < 10
    assert path.read_bytes() == before
    assert [*tmp_path.iterdir()] == [path]
