"""Where a gradient is differentiated again, each backward pass is the line's that calls it: so says a clock."""

import numpy as np
import pytest
from small import event, op, step, write

from tests.lines.planting import RECIPE as PLANTED
from tests.lines.planting import planted
from tracekit.base.intervals import StepFunction
from tracekit.lines.owners import DOUBLE_BACKWARD, INNER_BACKWARD, PHASES
from tracekit.lines.threads import double_passes
from tracekit.trace import Trace

RECIPE = PLANTED.with_name("forces_recipe.py")
STRETCHES = ("energy", "forces", "backward")


@pytest.fixture(scope="module")
def forces(tmp_path_factory):
    return planted(tmp_path_factory.mktemp("forces"), recipe=RECIPE)


def test_each_pass_costs_the_line_that_calls_it_what_it_takes(forces):
    for name in STRETCHES:
        took = np.array([each[name] for each in forces.truth])
        ratios = forces.costs([name], recipe=RECIPE) / took
        assert np.sort(np.abs(ratios - 1))[len(ratios) // 3] < 0.1, (name, ratios)


def test_the_shares_are_those_of_the_clock(forces):
    """Of all steps together: what disturbs a step disturbs both measurements of it."""
    costs = np.array([forces.costs([name], recipe=RECIPE).sum() for name in STRETCHES])
    took = np.array([sum(each[name] for each in forces.truth) for name in STRETCHES])
    assert costs.argsort().tolist() == took.argsort().tolist()
    assert np.abs(costs / costs.sum() - took / took.sum()).max() < 0.1


def test_both_passes_are_phases_of_their_own(forces):
    ownership = forces.profile.ownership
    costs, owners, of_phase = ownership.costs["wall"], ownership.owners, dict.fromkeys(PHASES, 0)
    for owner, ns in zip(costs.owner.tolist(), costs.ns.tolist(), strict=True):
        of_phase[PHASES[owners.rows[owner].phase]] += ns
    assert 0 < of_phase["inner backward"] < of_phase["double backward"]
    assert of_phase["backward"] < of_phase["inner backward"]  # at most the way there


def node(name, start, end, number, thread=1):
    args = {"Sequence number": number, "Fwd thread id": thread}
    return event("cpu_op", f"autograd::engine::evaluate_function: {name}", start, end, **args)


def numbered(name, start, end, number):
    return event("cpu_op", name, start, end, **{"Sequence number": number, "Fwd thread id": 0})


def phases_of(path, *events, lines=(0, 50)):
    """When the passes begin, in µs, and what they are; the lines call from these moments on."""
    trace = Trace.load(write(path, step(0, 0, 100), *events))
    called = StepFunction(np.array([1000 * each for each in (*lines, 100)]), np.arange(1, len(lines) + 1), 0)
    passes, phases = double_passes(trace, called)
    return dict(zip((passes.starts // 1000).tolist(), phases.tolist(), strict=True))


def test_a_pass_whose_operators_are_differentiated_later_is_an_inner_one(tmp_path):
    first = [numbered("aten::mm", 1, 9, 1), node("MmBackward0", 10, 30, 1), numbered("aten::mm", 12, 25, 2)]
    second = [node("MmBackward0", 60, 70, 2), node("MmBackward0", 70, 80, 1)]
    assert phases_of(tmp_path / "a.json", *first, *second) == {10: INNER_BACKWARD, 60: DOUBLE_BACKWARD}


def test_two_plain_passes_are_neither(tmp_path):
    first = [numbered("aten::mm", 1, 9, 1), node("MmBackward0", 10, 30, 1), op("aten::mm", 12, 25)]
    second = [numbered("aten::mm", 51, 55, 2), node("MmBackward0", 60, 70, 2), op("aten::mm", 61, 65)]
    assert phases_of(tmp_path / "a.json", *first, *second) == {}


def test_what_a_checkpoint_computes_again_inside_its_own_node_is_no_second_pass(tmp_path):
    events = [
        numbered("aten::mm", 1, 9, 1),
        node("CheckpointFunctionBackward", 10, 40, 1),
        numbered("aten::mm", 12, 20, 2),
        node("MmBackward0", 22, 35, 2),
    ]
    assert phases_of(tmp_path / "a.json", *events) == {}


def test_threads_number_by_themselves(tmp_path):
    """Nodes of another thread have operators with the numbers of the main one: whose they are, the home says."""
    first = [numbered("aten::mm", 1, 9, 1), numbered("aten::relu", 9, 10, 2), node("MmBackward0", 10, 30, 1)]
    inside = numbered("aten::mm", 12, 25, 1)
    second = [node("ReluBackward0", 60, 65, 2), node("MmBackward0", 66, 80, 1)]
    # The operator inside has the number of one on the main thread, and runs on it: the second pass goes through both.
    assert phases_of(tmp_path / "a.json", *first, inside, *second) == {10: INNER_BACKWARD, 60: DOUBLE_BACKWARD}
    elsewhere = [node("MmBackward0", 66, 80, 1, thread=2)]
    assert phases_of(tmp_path / "b.json", *first, inside, *elsewhere) == {}
