"""The sheet of TraceLens, in the format that its documentation gives, is read in full: the tool itself is not here."""

import gzip
from pathlib import Path

import pytest
from small import kernel, step, write

from tests.compare.judged import judged
from tests.compare.peers import tracelens

_WRITES_THE_SHEET = """#!/bin/sh
printf 'type,time ms,percent\\ncomputation_time,0.02,50\\nexposed_comm_time,0,0\\nexposed_memcpy_time,0.005,12.5\\n' \
    > "$4/gpu_timeline.csv"
printf 'busy_time,0.025,62.5\\nidle_time,0.015,37.5\\ntotal_time,0.04,100\\n' >> "$4/gpu_timeline.csv"
"""


def test_its_timeline_is_held_against_the_time_from_first_to_last_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = write(tmp_path / "t.json", step(0, 0, 60), kernel("gemm", 10, 30, 1), kernel("to", 45, 50, 2, "gpu_memcpy"))
    trace = tmp_path / "t.json.gz"
    trace.write_bytes(gzip.compress(plain.read_bytes()))
    tool = tmp_path / "TraceLens_generate_perf_report_pytorch"
    tool.write_text(_WRITES_THE_SHEET)
    tool.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    (said,) = tracelens.breakdowns(trace)
    assert said.windows == [[10_000, 50_000]]
    (way,) = judged([trace], [[{**vars(said)}]])
    assert (way["sum_off"], way["busy_off"], way["idle"]) == (0, 0, 15_000)
