"""Limits of a trace are reported: work from before the recording, a host that ends early, several devices."""

from small import event, kernel, launch, op, step, write

from tracekit.trace import Trace


def health_of(path, *events):
    return {each.id: each.message for each in Trace.load(write(path, *events), use_cache=False).health}


WORK = [step(0, 0, 100), op("aten::mm", 10, 40), launch(20, 30, 50), kernel("gemm", 60, 90, 50)]


def test_a_whole_recording_of_one_device(tmp_path):
    assert not health_of(tmp_path / "a.json", *WORK).keys() - {"whole_microseconds"}


def test_work_from_before_the_recording(tmp_path):
    said = health_of(tmp_path / "a.json", *WORK, kernel("old", 0, 12, 7), kernel("old", 12, 25, 8))
    assert said["unlinked_gpu"].endswith(
        "2 of 3 GPU activities have no launch call in the trace: 2 were submitted before the recording."
    )
    assert "for another 25.0 µs" in said["backlog"]


def test_a_host_side_that_ends_early(tmp_path):
    said = health_of(tmp_path / "a.json", *WORK, kernel("late", 110, 120, 70))
    assert said["unlinked_gpu"].endswith(
        "1 of 2 GPU activities has no launch call in the trace: 1 was submitted after the recording of the host ended."
    )
    assert "backlog" not in said


def test_several_devices(tmp_path):
    said = health_of(tmp_path / "a.json", *WORK, launch(32, 34, 51), kernel("gemm", 70, 95, 51) | {"pid": 1})
    assert "2 devices" in said["several_devices"]


def test_work_of_another_process_is_not_said_to_come_late(tmp_path):
    theirs = launch(105, 108, 69) | {"pid": 2, "tid": 2}
    said = health_of(tmp_path / "a.json", *WORK, theirs, kernel("late", 110, 120, 70))
    assert said["unlinked_gpu"].endswith("1 of 2 GPU activities has no launch call of the training process.")


def test_work_of_another_process_is_no_backlog(tmp_path):
    """Where the training process makes no call, nothing says that work was submitted before the first step."""
    theirs = launch(20, 30, 50) | {"pid": 2, "tid": 2}
    said = health_of(tmp_path / "a.json", step(0, 0, 100), op("aten::mm", 10, 40), theirs, kernel("gemm", 60, 90, 50))
    assert said["unlinked_gpu"] == "The only GPU activity lacks a launch call of the training process."
    assert "calls_unknown" in said
    assert "backlog" not in said
    two = [kernel("gemm", 60, 90, 50), kernel("gemm", 90, 95, 51)]
    said = health_of(tmp_path / "b.json", step(0, 0, 100), op("aten::mm", 10, 40), theirs, *two)
    assert said["unlinked_gpu"] == "All 2 GPU activities lack a launch call of the training process."


def test_stacks_slow_python_down(tmp_path):
    frame = event("python_function", "train.py(3): main", 0, 100)
    assert "slows Python down" in health_of(tmp_path / "a.json", *WORK, frame)["stacks"]
    assert "stacks" not in health_of(tmp_path / "b.json", *WORK)
