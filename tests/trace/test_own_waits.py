"""The profiler waits for the GPU when it stops; that wait does not belong to the training."""

import pytest
from real import trace_path
from small import event, kernel, launch, op, step, write

from tracekit.trace import Trace
from tracekit.trace.own_waits import own_waits

SYNC = "cudaDeviceSynchronize"
WORK = [op("aten::mm", 10, 40), launch(20, 30, 1), kernel("gemm", 35, 90, 1)]


def left_out(path, *events):
    """The starts, in µs, of the waits that belong to the recording itself."""
    trace = Trace.load(write(path, *events), use_cache=False)
    calls = trace.census.count(lambda roles: roles.sync_by_name)
    rows = trace.where(lambda part: part.roles.sync_by_name)
    assert len(rows) == calls
    return [float(start) / 1000 for start in trace.ts_ns[own_waits(trace, rows)]]


def test_after_the_last_step(tmp_path):
    ours = launch(50, 92, 0, SYNC)
    assert left_out(tmp_path / "a.json", step(0, 0, 95), *WORK, ours, launch(100, 120, 0, SYNC)) == [100]


@pytest.mark.parametrize("later", [op("aten::add", 130, 140), launch(130, 140, 9), launch(130, 140, 0, SYNC)])
def test_not_while_work_goes_on(tmp_path, later):
    assert 100 not in left_out(tmp_path / "a.json", *WORK, launch(100, 120, 0, SYNC), later)


def test_not_inside_a_step_or_an_operator(tmp_path):
    assert not left_out(tmp_path / "a.json", step(0, 0, 95), *WORK, launch(50, 92, 0, SYNC))
    assert not left_out(tmp_path / "b.json", *WORK, op("aten::item", 95, 130), launch(100, 120, 0, SYNC))


def test_with_stacks_its_frames_tell(tmp_path):
    stop = event("python_function", "torch/profiler/profiler.py(256): stop_trace", 99, 125)
    user = event("python_function", "train.py(3): main", 0, 300)
    assert left_out(tmp_path / "a.json", *WORK, user, stop, launch(100, 120, 0, SYNC), launch(200, 210, 0, SYNC)) == [
        100
    ]


@pytest.mark.parametrize("name", ["leimao_cudagraph_manual_rtx5080", "luatil_compile_cudagraph_rtx3060"])
def test_of_real_traces(name):
    trace = Trace.load(trace_path(name), use_cache=False)
    rows = trace.where(lambda part: part.roles.sync_by_name)
    assert own_waits(trace, rows).tolist() == rows.tolist()  # each trace has this one
