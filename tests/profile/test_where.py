"""The user's line at which an event happens."""

import numpy as np
from small import kernel, launch, op, step, write

from tests.lines.recorded import FILE, call, recorded, recorded_run
from tracekit.findings.culprits import where_of_event
from tracekit.profile import open_subject
from tracekit.profile.where import distinct_lines, line_table
from tracekit.report.tables import streams


def where(profile, *names):
    """The line at which the first event of each of these names happens."""
    trace = profile.trace
    events = [trace.names[code] for code in trace.name_codes.tolist()]
    rows = np.array([events.index(name) if name else -1 for name in names], np.int64)
    return line_table(profile, rows)


def opened(path):
    return open_subject([path]).profiles[0]


def test_operators_and_calls_and_kernels_have_the_line_of_their_owner(tmp_path):
    more = (launch(130, 132, 1), kernel("gemm", 150, 160, 1), launch(60, 61, 0, "cudaDeviceSynchronize"))
    run = recorded_run(recorded(tmp_path / "trace.json"), *more)
    names = ("aten::mm", "aten::add", "aten::relu", "cudaLaunchKernel", "gemm", "cudaDeviceSynchronize")
    rows = where(opened(run), *names)
    assert rows["line"].to_pylist() == [2, 3, 4, 3, 3, 2]
    assert set(rows["file"].to_pylist()) == {FILE}
    assert rows["where"].to_pylist()[0] == f"{FILE}:2 work"


def test_no_event_and_none_outside_the_steps_has_a_line(tmp_path):
    run = recorded_run(recorded(tmp_path / "trace.json"), op("aten::late", 300, 310))
    rows = where(opened(run), "", "aten::late", "aten::mm")
    assert rows["where"].to_pylist()[:2] == [None, None]
    assert rows["line"].to_pylist() == [None, None, 2]
    which, places = distinct_lines(rows)
    assert [places[number]["line"] for number in which] == [None, None, 2]


def test_a_trace_with_stacks_tells_functions(tmp_path):
    trace = write(
        tmp_path / "trace.json",
        step(0, 0, 100),
        call("mine.py(1): work", 0, 100),
        op("aten::mm", 20, 60),
        launch(30, 40, 1),
        kernel("gemm", 50, 90, 1),
    )
    rows = where(opened(trace), "aten::mm", "gemm", "ProfilerStep#0")
    assert rows["where"].to_pylist() == ["mine.py:1 work"] * 3
    assert rows["function"].to_pylist() == ["work"] * 3
    assert rows["line"].null_count == 3


def packaged(tmp_path, outermost):
    """An operator below a function of a package, which that function calls."""
    frames = (call(outermost, 0, 100), call("package/model.py(5): forward", 10, 80))
    return opened(write(tmp_path / "trace.json", step(0, 0, 100), *frames, op("aten::mm", 20, 60)))


def test_tables_of_a_trace_with_stacks_name_the_line_that_findings_name(tmp_path):
    profile = packaged(tmp_path, "mine.py(1): work")
    assert where(profile, "aten::mm")["where"].to_pylist() == ["mine.py:1 work"]
    row = [profile.trace.names[code] for code in profile.trace.name_codes.tolist()].index("aten::mm")
    assert where_of_event(profile, row).at == " at mine.py:1"


def test_what_no_line_of_the_users_owns_has_the_function_that_may_be(tmp_path):
    rows = where(packaged(tmp_path, "torch/nn/modules/module.py(9): _call_impl"), "aten::mm", "")
    assert rows["where"].to_pylist() == ["package/model.py:5 forward", None]
    assert rows["file"].to_pylist() == ["package/model.py", None]


def test_a_trace_too_long_for_owners_tells_functions(tmp_path, monkeypatch):
    monkeypatch.setattr("tracekit.profile.where.MOST_EVENTS", 1)
    rows = where(packaged(tmp_path, "mine.py(1): work"), "aten::mm", "ProfilerStep#0", "")
    assert rows["where"].to_pylist() == ["package/model.py:5 forward", "mine.py:1 work", None]


def test_without_any_stacks_nothing_is_told(tmp_path):
    trace = write(tmp_path / "trace.json", step(0, 0, 100), op("aten::mm", 20, 60))
    rows = where(opened(trace), "aten::mm")
    assert rows.column_names == ["where", "file", "line", "function", "module"]
    assert all(column.null_count == 1 for column in rows.columns)


def test_every_table_of_events_has_their_lines(tmp_path):
    more = (launch(130, 132, 1), kernel("gemm", 150, 160, 1), launch(160, 172, 0, "cudaDeviceSynchronize"))
    profile = opened(recorded_run(recorded(tmp_path / "trace.json"), *more))
    exported = {name: stream.table() for name, stream in streams([profile]).items()}
    for name, line in (("launches", 3), ("kernels", 3), ("syncs", 4)):
        for table in (exported[name], exported[f"{name}_summary"]):
            assert (table["file"].to_pylist(), table["line"].to_pylist()) == ([FILE], [line]), name
            assert table["where"].to_pylist() == [f"{FILE}:{line} work"]


def test_a_group_of_events_has_its_costliest_line(tmp_path):
    more = (launch(50, 51, 1), launch(130, 135, 2), launch(136, 141, 3), kernel("gemm", 150, 160, 1))
    more += (kernel("gemm", 160, 164, 2), kernel("gemm", 164, 169, 3))
    profile = opened(recorded_run(recorded(tmp_path / "trace.json"), *more))
    exported = {name: stream.table() for name, stream in streams([profile]).items()}
    assert exported["launches_summary"]["line"].to_pylist() == [3, 2]  # each operator has a row
    assert exported["kernels_summary"]["line"].to_pylist() == [2]  # 10 µs of line 2, 9 of line 3
    assert exported["kernels"]["line"].to_pylist() == [2, 3, 3]
