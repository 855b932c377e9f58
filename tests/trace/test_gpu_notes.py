"""What each wait waits for, performance counters and bandwidths, wherever they are in a file."""

import json

import pytest
from small import event, write

from tracekit.trace import Trace
from tracekit.trace.collectives import rows_of

WAIT = event("cuda_sync", "Stream Wait Event", 500, 501, 7, 0, wait_on_stream=20, wait_on_cuda_event_record_corr_id=77)
COUNTED = event("cuda_profiler_range", "gemm", 600, 610, 0, 0, smsp__inst_executed=12.0, grid=[1, 1, 1])
COPY = event("gpu_memcpy", "Memcpy HtoD", 700, 702, 7, 0, bytes=1000, **{"memory bandwidth (GB/s)": 0.625})


def noted(trace):
    columns = ("name", "wait_stream", "wait_correlation", "bandwidth", "counters")
    return [tuple(row[name] for name in columns) for row in trace.notes.to_pylist()]


EXPECTED = [
    ("Stream Wait Event", 20, 77, None, None),
    ("gemm", None, None, None, [("smsp__inst_executed", 12.0)]),
    ("Memcpy HtoD", None, None, 0.625, None),
]


def test_they_are_kept_beside_the_events(tmp_path):
    trace = Trace.load(write(tmp_path / "t.json", event("cpu_op", "aten::mm", 1, 2), WAIT, COUNTED, COPY))
    assert noted(trace) == EXPECTED
    assert [trace.names[trace.name_codes[row]] for row in rows_of(trace, trace.notes)] == [row[0] for row in EXPECTED]


def test_those_of_a_long_file_are_kept_and_come_back_from_the_cache(tmp_path, monkeypatch):
    monkeypatch.setattr("tracekit.trace.storing.cache.WORTH_BYTES", 0)
    monkeypatch.setattr("tracekit.trace.storing.cache._SMALLEST", 0)
    monkeypatch.setenv("TRACEKIT_CACHE_DIR", str(tmp_path / "cache"))
    filler = [event("cpu_op", f"aten::op{k % 9}", 1000 + k, 1001 + k, note="x" * 200) for k in range(20_000)]
    path = write(tmp_path / "t.json", *filler[:10_000], WAIT, *filler[10_000:], COUNTED, COPY)
    assert path.stat().st_size > 4 << 20
    for _ in range(2):
        assert noted(Trace.load(path)) == EXPECTED


@pytest.mark.parametrize("args", [{"wait_on_stream": "no"}, {"wait_on_stream": None}, [1]])
def test_nonsense_is_no_note(tmp_path, args):
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"traceEvents": [event("cpu_op", "aten::mm", 1, 2), {**WAIT, "args": args}]}))
    assert noted(Trace.load(path)) == []


def test_finer_times_say_the_bandwidth_themselves(tmp_path):
    assert noted(Trace.load(write(tmp_path / "t.json", {**COPY, "ts": 700.125}))) == []
