"""The longest gaps: a known answer, and on real traces all idle time and nothing else."""

import os
from pathlib import Path

import pytest
from small import kernel, launch, op, step, write

from tracekit.analyses.gaps import _gaps, answer
from tracekit.profile import open_subject

TRACES = Path(os.environ.get("TRACEKIT_TRACES", Path(__file__).parents[3] / "shared" / "traces"))
BUSY = ("gpu_compute", "gpu_comm", "gpu_copy")


def profile_of(path):
    (profile,) = open_subject([path]).profiles
    return profile


def test_each_gap_with_what_the_host_did_and_what_ended_it(tmp_path):
    """Nothing has run before 10; from 30 to 90 the host is in aten::index; from 100 to 104 a launch is under way."""
    profile = profile_of(
        write(
            tmp_path / "t.json",
            step(0, 0, 120),
            *(launch(4, 8, 1), kernel("first", 10, 30, 1)),
            *(op("aten::index", 32, 84), launch(84, 88, 2), kernel("second", 90, 100, 2)),
            *(launch(95, 103, 3), kernel("third", 104, 120, 3)),
        )
    )
    result = answer(profile)
    assert [
        (row["gap_ns"], row["mostly"], row["mostly_ns"], row["host"], row["after"], row["before"])
        for row in result.table.to_pylist()
    ] == [
        (60_000, "dispatch", 52_000, "aten::index", "first", "second"),
        (10_000, "kernel launch", 6_000, "cudaLaunchKernel", None, "first"),
        (4_000, "kernel launch", 4_000, "cudaLaunchKernel", "second", "third"),
    ]
    assert (
        result.sentence
        == "The GPU idles for 74.0 µs in the only step that the mean covers, in 3 gaps of up to 60.0 µs."
    )


def test_one_gap_is_told_as_one_and_next_to_none_as_hardly_any(tmp_path):
    def said(busy_until):
        events = (step(0, 0, 20_000), launch(0, 2, 1), kernel("first", 2, busy_until, 1))
        profile = profile_of(write(tmp_path / "t.json", *events, launch(3, 5, 2), kernel("second", 19_990, 20_000, 2)))
        return answer(profile).sentence.partition("covers")[2]

    assert said(9_988) == ", in 2 gaps of up to 10.0 ms."
    assert said(19_990) == ", less than 0.1 % of the time."


def test_a_cpu_has_no_gaps(tmp_path):
    result = answer(profile_of(write(tmp_path / "t.json", step(0, 0, 100), op("aten::mm", 10, 90))))
    assert (result.status, result.sentence) == (
        "absent",
        "This trace contains no GPU activity, so there are no gaps.",
    )


def test_gaps_are_unknown_if_no_launch_starts_in_a_step(tmp_path):
    path = write(tmp_path / "t.json", launch(2, 6, 1), step(10, 10, 100), kernel("first", 20, 60, 1))
    result = answer(profile_of(path))
    assert (result.status, result.sentence) == ("unanswered", "Cannot be answered, because the wall time is unknown.")


@pytest.mark.parametrize("name", ["leimao_eager_rtx5080", "pyg_attentivefp_a100", "hta_alexnet_cuda_sync"])
def test_gaps_are_all_the_idle_time_of_the_counted_steps(name):
    path = TRACES / f"{name}.json.gz"
    if not path.exists():
        pytest.skip("needs the real traces")
    profile = profile_of(path)
    gaps = _gaps(profile, profile.attribution.pieces)
    counted = profile.answered["wall"]
    keys = profile.views["wall"].keys
    idle = sum(int(profile.attribution.wall[counted][:, at].sum()) for at, key in enumerate(keys) if key not in BUSY)
    assert int((gaps.end - gaps.start).sum()) == idle - profile.unseen.total()
    assert (gaps.start[1:] >= gaps.end[:-1]).all()
