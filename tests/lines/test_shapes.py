"""Shapes of operators' inputs, of the trace itself and carried over to one without them."""

import numpy as np
from small import event, op, step, write

from tests.lines.recorded import call
from tracekit.profile import Capture, Profile, open_subject
from tracekit.profile.shapes import dims_of


def shaped(name, start, end, dims):
    return op(name, start, end) | {"args": {"Input Dims": dims}}


def rows_of(profile, *names):
    trace = profile.trace
    events = [trace.names[code] for code in trace.name_codes.tolist()]
    return np.array([events.index(name) if name else -1 for name in names], np.int64)


def recording(path):
    return write(
        path,
        step(0, 0, 100),
        call("mine.py(1): work", 0, 100),
        shaped("aten::mm", 20, 60, [[8, 16], [16, 4]]),
        shaped("aten::item", 20, 25, []),
        op("aten::relu", 85, 95),
    )


def test_a_trace_with_shapes(tmp_path):
    (profile,) = open_subject([recording(tmp_path / "trace.json")]).profiles
    found = dims_of(profile, rows_of(profile, "aten::mm", "aten::item", "aten::relu", "ProfilerStep#0", ""))
    assert found.to_pylist() == ["[[8, 16], [16, 4]]", "[]", None, None, None]


def test_a_steady_step_has_the_shapes_of_the_recording(tmp_path):
    detail = recording(tmp_path / "detail.json")
    steady = write(
        tmp_path / "steady.json",
        step(3, 0, 50),
        op("aten::mm", 10, 30),
        op("aten::item", 10, 12),
        op("aten::relu", 40, 45),
        op("aten::mm", 60, 70),
    )
    (bare,) = open_subject([steady]).profiles
    rows = rows_of(bare, "aten::mm", "aten::relu")
    assert dims_of(bare, rows).to_pylist() == [None, None]
    profile = Profile("both", (*bare.captures, Capture(detail, None, window="detail")))
    rows = np.append(rows, len(profile.trace.ts_ns) - 1)  # the last lies in no step
    assert dims_of(profile, rows).to_pylist() == ["[[8, 16], [16, 4]]", None, None]


def test_the_backward_thread_is_matched_by_itself(tmp_path):
    def node(start, end, **more):
        return event("cpu_op", "autograd::engine::evaluate_function: MmBackward0", start, end, tid=2) | more

    def product(start, end, **more):
        return event("cpu_op", "aten::bmm", start, end, tid=2) | more

    args = {"args": {"Input Dims": [[1, 2, 3]]}}
    detail = write(
        tmp_path / "detail.json",
        step(0, 0, 100),
        call("mine.py(1): work", 0, 100),
        op("aten::mm", 20, 40),
        node(50, 90),
        product(60, 80, **args),
    )
    steady = write(tmp_path / "steady.json", step(0, 0, 50), op("aten::mm", 5, 10), node(20, 45), product(30, 40))
    (bare,) = open_subject([steady]).profiles
    profile = Profile("both", (*bare.captures, Capture(detail, None, window="detail")))
    assert dims_of(profile, rows_of(profile, "aten::bmm", "aten::mm")).to_pylist() == ["[[1, 2, 3]]", None]
