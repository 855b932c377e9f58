"""A trace without the time of recording."""

import numpy as np
import pytest
from small import event, kernel, launch, op, step, write

from tests.world.worlds import world
from tracekit.engine import attribute
from tracekit.engine.replay import Retiming
from tracekit.trace import Trace


@pytest.mark.parametrize("seed", [0, 1, 3, 5, 7, 11])
def test_events_that_cost_nothing_leave_everything_where_it_was(tmp_path, seed):
    path = world(seed).write(tmp_path / "world")
    trace = Trace.load(path, use_cache=False)
    again = attribute(Retiming(trace).without({}))
    assert np.array_equal(again.wall, attribute(trace).wall)
    assert np.array_equal(again.host, attribute(trace).host)
    assert np.array_equal(Retiming(trace).step_ns({}), trace.steps.done - trace.steps.begin)


def test_operators_cost_outside_of_their_own_time_and_calls_inside(tmp_path):
    path = write(
        tmp_path / "a.json",
        step(0, 0, 100),
        event("python_function", "train.py(1): f", 5, 95),
        op("aten::mm", 20, 50),
        launch(30, 40, 1),
        kernel("gemm", 44, 54, 1),
        launch(60, 80, 0, "cudaDeviceSynchronize"),
    )
    trace = Trace.load(path, use_cache=False)
    retiming = Retiming(trace)
    assert retiming.a_step() == {"operator": 2, "frame": 1, "call": 2}
    recording = retiming.recording({"operator": 4_000, "call": 2_000})
    assert [*zip((recording.starts // 1000).tolist(), (recording.ends // 1000).tolist(), strict=True)] == [
        (-2, 0), (18, 20), (30, 31), (39, 40), (50, 52), (60, 61), (79, 80), (100, 102),
    ]  # fmt: skip
    told = retiming.without({"operator": 4_000, "call": 2_000})
    names = [told.names[code] for code in told.name_codes]
    spans = zip((told.ts_ns - told.ts_ns[0]).tolist(), (told.end_ns - told.ts_ns[0]).tolist(), strict=True)
    times = dict(zip(names, spans, strict=True))
    assert times["aten::mm"] == (18_000, 46_000)
    assert times["cudaLaunchKernel"] == (28_000, 36_000)
    assert times["gemm"] == (41_000, 51_000)  # submitted 2 µs earlier for the operator, and 1 µs for its own call
    assert retiming.step_ns({"operator": 4_000, "call": 2_000}).tolist() == [92_000]
