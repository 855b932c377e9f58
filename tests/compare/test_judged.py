"""Time in no part, in two, in the wrong one, and not looked at is found; the truth comes from the file alone."""

import gzip
from pathlib import Path
from typing import Any

import pytest
from small import event, kernel, step, write

from tests.compare import reference
from tests.compare.judged import judged, named


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A step from 100 to 200 µs; the GPU works from 110 to 140 and from 180 to 220, partly on two streams at a time."""
    events = [
        step(3, 100, 200),
        event("gpu_user_annotation", "ProfilerStep#3", 90, 230),  # the same step once more, on the GPU's rows
        event("cpu_op", "triton_0", 150, 160, stream=7),  # a host's event, although it names a stream
        kernel("gemm", 110, 130, 1),
        kernel("add", 120, 140, 2),
        kernel("copy", 180, 220.0005, 3, cat="gpu_memcpy"),
    ]
    plain = write(tmp_path / "trace.json", *events)
    packed = tmp_path / "trace.json.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    return packed


def said(windows: list[list[int]], **parts: float) -> list[list[dict[str, Any]]]:
    causes = {name: took for name, took in parts.items() if name != "gpu"}
    return [[{"windows": windows, "parts": parts, "busy": ["gpu"], "causes": causes, "settings": ""}]]


def test_a_file_is_read_in_whole_nanoseconds(trace: Path) -> None:
    read = reference.read(trace)
    assert read.gpu == [(110_000, 140_000), (180_000, 220_000)]
    assert read.recording == (100_000, 220_000)


def test_windows_that_overlap_are_one(trace: Path) -> None:
    assert reference.read(trace).busy_ns([(100_000, 130_000), (120_000, 190_000)]) == 30_000 + 10_000


def test_a_whole_breakdown_is_exact(trace: Path) -> None:
    (way,) = judged([trace], said([[100_000, 220_000]], gpu=70_000, python=50_000))
    assert (way["sum_off"], way["busy_off"], way["outside"], way["idle"]) == (0, 0, 0, 50_000)


@pytest.mark.parametrize(
    ("windows", "gpu", "other", "sum_off", "busy_off", "outside"),
    [
        pytest.param([[100_000, 220_000]], 70_000, 30_000, -20_000, 0, 0, id="lost"),
        pytest.param([[100_000, 220_000], [110_000, 220_000]], 140_000, 90_000, 110_000, 70_000, 0, id="twice"),
        pytest.param([[100_000, 220_000]], 80_000, 40_000, 0, 10_000, 0, id="host time as GPU work"),
        pytest.param([[110_000, 220_000]], 70_000, 40_000, 0, 0, 10_000, id="from the first kernel"),
    ],
)
def test_what_is_wrong_is_found(
    trace: Path, windows: list[list[int]], gpu: int, other: int, sum_off: int, busy_off: int, outside: int
) -> None:
    (way,) = judged([trace], said(windows, gpu=gpu, other=other))
    assert (way["sum_off"], way["busy_off"], way["outside"]) == (sum_off, busy_off, outside)


def test_ranks_are_added_and_what_has_no_name_is_no_cause(trace: Path) -> None:
    answers = said([[100_000, 220_000]], gpu=70_000, python=40_000, other=10_000)
    (way,) = judged([trace, trace], answers * 2)
    assert way["recording"] == 240_000
    assert way["causes"] == {"python": 80_000, "other": 20_000}
    assert named(way["causes"]) == 80_000
