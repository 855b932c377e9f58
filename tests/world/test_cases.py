"""Worlds about which tracekit was wrong once: the first finding, the culprit and the cost are right now."""

from __future__ import annotations

import pytest

from tests.world.causes import (
    Allocation,
    Cause,
    CopyBack,
    Garbage,
    ManySmallOperators,
    OptimizerLoop,
    SlowPython,
    Synchronize,
    ZeroLoop,
)
from tests.world.kineto import Switches
from tests.world.score import judge
from tests.world.training import Script
from tests.world.worlds import World

SCRIPT = Script(seed=1, kernel_ns=100_000)  # a step of 1.4 ms, nearly all of it products


@pytest.mark.parametrize(
    "cause",
    [
        pytest.param(Allocation(100_000, times=3), id="allocation in every step"),
        pytest.param(Garbage(900_000), id="the costliest is first, whether or not the GPU is busy most of the time"),
        pytest.param(ManySmallOperators(3_000, times=200), id="a loop of operators, and the kernels that one replaces"),
        pytest.param(OptimizerLoop(3_000, times=100), id="a loop of the optimizer, with what it does beside the GPU"),
        pytest.param(ZeroLoop(3_000, times=200), id="gradients set to zero one by one"),
        pytest.param(Synchronize(0, times=8), id="without a wait, the host is ahead for longer than it waited"),
        pytest.param(SlowPython(2_000_000), id="Python that begins while the GPU has work"),
        pytest.param(CopyBack(700_000), id="a copy that the host waits for costs the GPU its time, too"),
    ],
)
@pytest.mark.parametrize("stacks", [True, False])
def test_a_single_cause_is_found_and_priced(cause: Cause, stacks: bool) -> None:
    score = judge(World(SCRIPT, (cause,), switches=Switches(stacks=stacks)))
    assert (score.first, score.cost, score.culprit is not False) == (True, True, True), score.said


def test_a_wait_outside_of_any_operator_is_named_after_its_call() -> None:
    score = judge(World(SCRIPT, (Synchronize(0, times=8),), switches=Switches(stacks=False)))
    assert (score.first, score.culprit) == (True, True), score.said
