"""A log that has the metrics of its compilations only, as torch wrote it before it recorded spans; of any name."""

import gzip

import pytest

from tests.compile_log.test_torch_trace import MINE, record
from tracekit.compile_log.torch_trace import read

CODE = {"co_filename": MINE, "co_firstlineno": 6, "co_name": "forward"}
OF_TODAY = [
    {**CODE, "compile_id": f"0/{k}", "start_time_us": 1_000_000 * k, "duration_us": 30_000, "graph_op_count": 4}
    for k in range(3)
]
OF_2_4 = [
    {**CODE, "start_time": 1.0 * k, "entire_frame_compile_time_s": 0.03, "backend_compile_time_s": 0.02}
    for k in range(3)
]


def log(metrics, key="compilation_metrics"):
    parts = []
    for k, each in enumerate(metrics):
        ids = {"frame_id": 0, "frame_compile_id": k}
        parts.append(record({key: each, **ids}))
    return "".join(parts)


@pytest.mark.parametrize("key", ["compilation_metrics", "comp_metrics"])
@pytest.mark.parametrize("metrics", [OF_TODAY, OF_2_4])
def test_metrics_are_compilations(tmp_path, metrics, key):
    path = tmp_path / "anything.txt"
    path.write_text(log(metrics, key))
    compiles = read(path)[0].compiles
    assert [(each.id, each.kind) for each in compiles] == [("0/0", "first"), ("0/1", "recompile"), ("0/2", "recompile")]
    assert [each.start_ns for each in compiles] == [0, 1_000_000_000, 2_000_000_000]
    assert {each.end_ns - each.start_ns for each in compiles} == {30_000_000}
    assert {sum(each.phases.values()) for each in compiles} == {30_000_000}
    assert {each.code for each in compiles} == {f"{MINE}:6 forward"}
    assert all(each.has_graph for each in compiles) is (metrics is OF_TODAY)


def test_the_metrics_of_a_backward_graph_are_its_own(tmp_path):
    (tmp_path / "log").write_text(log(OF_TODAY[:1]) + log(OF_TODAY[:1], "bwd_compilation_metrics"))
    forward, backward = read(tmp_path / "log")[0].compiles
    assert (forward.kind, backward.kind, forward.id, backward.id) == ("first", "backward", "0/0", "0/0")


def test_metrics_without_times_or_of_no_use_do_no_harm(tmp_path):
    (tmp_path / "log").write_text(log([{}, {"start_time": "soon"}, []]) + 'V1122 1:1 7 x] {"compilation_metrics": 5}\n')
    assert [each.id for each in read(tmp_path / "log")[0].compiles] == ["0/0", "0/1", "0/2"]


def test_a_log_is_found_by_its_content(tmp_path):
    (tmp_path / "a_notes.txt").write_text("nothing")
    (tmp_path / "b.bin").write_bytes(b"\x1f\x8bdamaged")
    (tmp_path / "c.folder").mkdir()
    (tmp_path / "stdout").write_bytes(gzip.compress(("starting\n" + log(OF_TODAY)).encode()))
    assert len(read(tmp_path)[0].compiles) == 3
