"""The profiler waits for the GPU when it stops; that wait does not belong to the training."""

import html
import json

import pytest
from real import trace_path
from small import event, kernel, launch, op, step, write

from tracekit.cli import main
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


@pytest.mark.parametrize(
    ("begins", "ends"),
    [(100, 100), (50, 90)],  # the GPU is done by then, or goes on working until 90
)
def test_a_bare_recording_is_told_of_until_its_own_wait(tmp_path, begins, ends):
    trace = Trace.load(write(tmp_path / "a.json", *WORK, launch(begins, 1300, 0, SYNC)), use_cache=False)
    assert (trace.steps.window, trace.steps.own_end) == ((10_000, 1_300_000), (0, 0))  # the contract has all of it
    assert trace.as_told().steps.window == (10_000, ends * 1000)
    assert trace.as_told().steps.own_end == (ends * 1000, 1_300_000)


def test_the_last_step_is_told_of_until_the_captures_own_wait(tmp_path):
    events = step(0, 0, 100), *WORK, event("user_annotation", "tracekit.synchronize", 41, 99), launch(42, 98, 0, SYNC)
    steps = Trace.load(write(tmp_path / "a.json", *events), use_cache=False).as_told().steps
    assert (steps.returned.tolist(), steps.done.tolist(), steps.own_end) == ([42_000], [90_000], (90_000, 100_000))


@pytest.mark.parametrize("later", [op("aten::add", 1310, 1320), launch(1310, 1320, 9)])
def test_a_wait_before_more_work_stays(tmp_path, later):
    stop = event("python_function", "torch/profiler/profiler.py(256): stop_trace", 99, 1305)
    trace = Trace.load(write(tmp_path / "a.json", *WORK, stop, launch(100, 1300, 0, SYNC), later), use_cache=False)
    assert trace.as_told().steps.window == trace.steps.window


def test_every_figure_that_people_read_is_without_it_and_says_so_once(tmp_path, capsys):
    path = write(tmp_path / "a.json", *WORK, launch(100, 1300, 0, SYNC))
    assert main(["report", str(path), "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    (variant,) = document["variants"]
    assert (variant["mean"]["wall_ns"], variant["steps"][0]["wall_ns"]) == (1_290_000, 1_290_000)
    (shown,) = (
        block["variants"][0]
        for section in document["sections"]
        for block in section["blocks"]
        if block["kind"] == "breakdown" and block["name"] == "wall"
    )
    assert shown["total_ns"] == 90_000
    assert shown["parts"]["sync_stall"] == 0
    assert variant["verdict"]["id"] != "sync_stall"
    for face in ("text", "markdown", "html"):
        assert main(["report", str(path), "--format", face, "--full"]) == 0
        said = " ".join(html.unescape(capsys.readouterr().out).replace("\u00a0", " ").split())
        assert said.count("The profiler's own wait at the end, 1.20 ms, is left out.") == 1, face
        assert "1.29 ms" not in said, face
