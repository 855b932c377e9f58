"""Traces that lost kernels: the loss is noticed; the traces are taken again if that helps, or else it is reported."""

import gzip
import json
from pathlib import Path

import pytest

from tracekit.capture import passes
from tracekit.capture.course import Course
from tracekit.capture.job import PassResult
from tracekit.capture.lost_kernels import completed, gpu_side
from tracekit.capture.options import Options, PlannedVariant
from tracekit.capture.preparation import Prepared
from tracekit.run import Profiled, Requested, Run, Traces

TRACES = Traces(cold="cold.json.gz", steady="steady.json.gz", detail="detail.json.gz")


def write(folder, window, launches, kernels):
    """Write a trace of `launches` launches, the first of which have no kernel."""
    rows = [("cuda_runtime", "cudaLaunchKernel", number) for number in range(launches)]
    rows += [("kernel", "gemm", number) for number in range(launches - kernels, launches)]
    rows += [("cuda_runtime", "cudaMemcpyAsync", 1000)]  # it copies no bytes and therefore leaves no row
    events = [{"ph": "X", "cat": cat, "name": name, "args": {"correlation": number}} for cat, name, number in rows]
    path = folder / f"{window}.json.gz"
    path.write_bytes(gzip.compress(json.dumps({"traceEvents": [{"ph": "M", "name": "n"}, *events]}).encode()))
    return path


def test_launches_and_kernels_are_matched(tmp_path):
    side = gpu_side(write(tmp_path, "steady", 50, 40))
    assert (side.launches, side.lost, side.incomplete) == (50, 10, True)
    assert not gpu_side(write(tmp_path, "steady", 50, 49)).incomplete
    assert not gpu_side(write(tmp_path, "steady", 0, 0)).incomplete  # of a CPU
    (tmp_path / "steady.json.gz").write_bytes(b"no trace")
    assert gpu_side(tmp_path / "steady.json.gz") is None


def test_later_sessions_that_lost_kernels_get_processes_of_their_own(tmp_path):
    write(tmp_path, "cold", 50, 50)
    write(tmp_path, "steady", 50, 0)
    write(tmp_path, "detail", 50, 40)
    windows = []

    def take(window):
        windows.append(window)
        write(tmp_path, window, 50, 50)
        profiled = Profiled(step_ns=7, steps=20) if window == "steady" else None
        return PassResult(traces=Traces(**{window: f"{window}.json.gz"}), profiled=profiled)

    result = completed(PassResult(traces=TRACES, profiled=Profiled(step_ns=5, steps=20)), tmp_path, take)
    assert windows == ["steady", "detail"]
    assert (result.traces, result.profiled.step_ns) == (TRACES, 7)
    assert result.effective.notes == [
        "the profiler lost kernels where traces share a process: steady, detail got one each"
    ]


def test_where_the_first_session_has_no_kernels_either_it_is_only_said(tmp_path):
    for window in ("cold", "steady", "detail"):
        write(tmp_path, window, 50, 0)
    result = completed(PassResult(traces=TRACES), tmp_path, pytest.fail)
    said = "its trace holds 50 launches, but no kernel: tracekit doctor shows possible causes"
    assert result.effective.notes == [f"{window}: {said}" for window in ("cold", "steady", "detail")]


def test_what_another_process_loses_again_is_said(tmp_path):
    write(tmp_path, "cold", 50, 50)
    write(tmp_path, "steady", 50, 10)
    result = PassResult(traces=Traces(cold="cold.json.gz", steady="steady.json.gz"))
    result = completed(result, tmp_path, lambda window: PassResult(outcome="timeout"))
    assert result.effective.notes == ["steady: for 40 of 50 launches the trace holds no kernel: the profiler lost them"]


def test_a_whole_trace_is_left_alone(tmp_path):
    write(tmp_path, "steady", 50, 50)
    result = PassResult(traces=Traces(steady="steady.json.gz"))
    assert completed(result, tmp_path, pytest.fail) is result


def test_a_capture_takes_such_windows_again_each_in_a_process_of_its_own_and_says_so(tmp_path, monkeypatch):
    jobs, lines = [], []

    def perform(job, scratch, options):
        jobs.append((job.stage, job.windows))
        if job.stage != "profile":
            return PassResult()
        for window in job.windows:  # only the first session of the process is complete
            write(Path(job.folder), window, 50, 50 if window == job.windows[0] else 0)
        return PassResult(traces=Traces(**{window: f"{window}.json.gz" for window in job.windows}))

    monkeypatch.setattr(passes, "_perform", perform)
    run = Run(created="", tracekit="", recipe="r", script="r.py", device="cuda", planned=["eager"], variants=[])
    planned = PlannedVariant("eager", Requested(compile=False), {})
    variant, _ = passes.capture_variant(
        planned,
        Prepared(run, [planned], {}),
        tmp_path,
        caches=tmp_path,
        options=Options("r.py", tell=lines.append),
        course=Course([planned], ["measure", "profile", "check"], Options("r.py")),
    )
    assert [windows for stage, windows in jobs if stage == "profile"] == [
        ("cold", "steady", "detail"),
        ("steady",),
        ("detail",),
    ]
    assert [line.strip() for line in lines if "kernels are missing" in line] == [
        f"kernels are missing: taking the {window} trace again, in a separate process …"
        for window in ("steady", "detail")
    ]
    assert variant.effective.notes == [
        "the profiler lost kernels where traces share a process: steady, detail got one each"
    ]
