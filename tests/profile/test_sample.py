"""The kernels of a step and what was recorded about them, in the trace itself or in the recording with stacks."""

import numpy as np
import pytest
from small import event, kernel, launch, op, step, write

from tests.lines.recorded import call
from tracekit.profile import Capture, Profile, open_subject


def shaped(name, start, end, dims):
    return op(name, start, end) | {"args": {"Input Dims": dims}}


def launched(at, number):
    return [launch(at, at + 1, number), kernel(f"kernel{number}", at + 2, at + 8, number)]


def sampled(profile):
    """The shapes of the inputs, by operator."""
    trace, sample = profile.trace, profile.sample
    return {
        trace.names[trace.name_codes[row]]: known.inputs if (known := sample.arguments.get(row)) else None
        for row in sample.operators.tolist()
        if row >= 0
    }


def test_the_trace_has_them_itself(tmp_path):
    events = [step(0, 0, 100), shaped("aten::mm", 20, 60, [[8, 16], [16, 4]]), *launched(30, 1)]
    later = [step(1, 100, 200), shaped("aten::bmm", 120, 160, [[1, 2, 3]]), *launched(130, 2)]
    (profile,) = open_subject([write(tmp_path / "trace.json", *events, *later)]).profiles
    assert sampled(profile) == {"aten::mm": [(8, 16), (16, 4)]}  # of one step
    assert np.isnan(profile.sample.occupancy).all()


def test_a_steady_step_has_the_shapes_of_the_recording(tmp_path):
    detail = write(
        tmp_path / "detail.json",
        step(0, 0, 100),
        call("mine.py(1): work", 0, 100),
        shaped("aten::mm", 20, 60, [[8, 16], [16, 4]]),
        op("aten::relu", 85, 95),
        event("cpu_op", "autograd::engine::evaluate_function: MmBackward0", 50, 90, tid=2),
        event("cpu_op", "aten::bmm", 60, 80, tid=2) | {"args": {"Input Dims": [[1, 2, 3]]}},
    )
    steady = write(
        tmp_path / "steady.json",
        step(3, 0, 50),
        op("aten::mm", 5, 20),
        *launched(6, 1),
        op("aten::relu", 30, 40),
        *launched(31, 2),
        event("cpu_op", "autograd::engine::evaluate_function: MmBackward0", 20, 45, tid=2),
        event("cpu_op", "aten::bmm", 30, 40, tid=2),
        *[each | ({"tid": 2} if each["cat"] == "cuda_runtime" else {}) for each in launched(33, 3)],
    )
    (bare,) = open_subject([steady]).profiles
    assert sampled(bare) == {"aten::mm": None, "aten::relu": None, "aten::bmm": None}
    profile = Profile("both", (*bare.captures, Capture(detail, None, window="detail")))
    assert sampled(profile) == {"aten::mm": [(8, 16), (16, 4)], "aten::relu": None, "aten::bmm": [(1, 2, 3)]}


@pytest.mark.parametrize("occupancy", [-935265, 1200, None])
def test_an_occupancy_that_is_no_share_is_none(tmp_path, occupancy):
    made = kernel("gemm", 40, 90, 1) | {"args": {"correlation": 1, "est. achieved occupancy %": occupancy}}
    (profile,) = open_subject(
        [write(tmp_path / "a.json", step(0, 0, 100), op("aten::mm", 10, 30), launch(15, 20, 1), made)]
    ).profiles
    assert np.isnan(profile.sample.occupancy).tolist() == [True]
