"""Sampling, fetching, copying and training are separated, and add up to the step."""

import pytest
from small import event, kernel, launch, op, step, write

from tests.lines.recorded import call
from tracekit.analyses import answers
from tracekit.profile import open_subject

LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def shaped(name, start, end, dims, types):
    return op(name, start, end) | {"args": {"Input Dims": dims, "Input type": types}}


def stages(profile):
    answer = next(each for each in answers(profile) if each.analysis == "stages")
    return answer, dict(zip(answer.table["stage"].to_pylist(), answer.table["step_ns"].to_pylist(), strict=True))


def opened(path, *events):
    (profile,) = open_subject([write(path, *events)]).profiles
    return profile


def test_stages_add_up_to_the_step(tmp_path):
    events = []
    for k in range(3):
        t = 1000.0 * k
        events += [
            step(k, t, t + 1000),
            call("train.py(1): train", t, t + 1000),
            event("user_annotation", LOADER, t, t + 400),
            shaped("aten::index", t + 10, t + 110, [[9000], []], ["long int", ""]),  # the lists of edges
            shaped("aten::index_select", t + 150, t + 250, [[900, 64], [], [30]], ["float", "Scalar", "long int"]),
            shaped("aten::index", t + 250, t + 300, [[900, 3], []], ["long int", ""]),  # categories of the same rows
            shaped("aten::index", t + 300, t + 340, [[77, 8], []], ["long int", ""]),  # the sampled rows
            op("aten::_to_copy", t + 400, t + 450),
            launch(t + 405, t + 410, 2 * k + 1, "cudaMemcpyAsync"),
            kernel("Memcpy HtoD (Pageable -> Device)", t + 420, t + 480, 2 * k + 1, "gpu_memcpy"),
            op("aten::mm", t + 450, t + 460),
            op("autograd::engine::evaluate_function: MmBackward0", t + 460, t + 465),
            launch(t + 451, t + 455, 2 * k + 2),
            kernel("gemm", t + 480, t + 1000, 2 * k + 2),
        ]
    answer, taken = stages(opened(tmp_path / "t.json", *events))
    assert taken == {
        "sampling and collating": 250_000,
        "fetching features": 150_000,
        "copying": 60_000,
        "training": 540_000,
    }
    assert answer.sentence == (
        "Shares of a step: sampling and collating 25.0 %, fetching features 15.0 %, copying 6.0 %, training 54.0 %."
    )


@pytest.mark.parametrize(
    ("iterator", "stage"),
    [
        ("_MultiProcessingDataLoaderIter", "waiting for batches that other processes make"),
        ("_SingleProcessDataLoaderIter", "sampling and collating"),
        ("_OfSomebodyElse", "waiting for batches that other processes make"),  # no operator runs meanwhile
    ],
)
def test_who_makes_the_batches(tmp_path, iterator, stage):
    loader = event("user_annotation", f"enumerate(DataLoader)#{iterator}.__next__", 0, 60)
    _, taken = stages(opened(tmp_path / "t.json", step(0, 0, 100), loader, op("aten::mm", 60, 100)))
    assert taken == {stage: 60_000, "running the model": 40_000}  # nothing of it is a backward pass


def test_a_loop_without_a_loader_has_no_stages(tmp_path):
    answer, taken = stages(opened(tmp_path / "t.json", step(0, 0, 100), op("aten::mm", 0, 100)))
    assert (answer.status, taken) == ("absent", {})
