"""Lines that take a known time get that time."""

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace

from tests.lines.owner_twin import adds_up, agrees
from tests.lines.planting import LAYERS, LINES, RECIPE, line_of, planted
from tracekit.engine import attribute
from tracekit.lines.ownership import Ownership


@pytest.fixture(scope="module")
def eager(tmp_path_factory):
    return planted(tmp_path_factory.mktemp("planted"), times=24)  # of sleep, more than a busy machine adds to a line


@pytest.mark.parametrize("name", LINES + LAYERS)
def test_a_line_costs_what_it_takes(eager, name):
    eager.check(name)


@pytest.mark.parametrize("name", LAYERS)
def test_backward_is_for_the_line_of_its_forward(eager, name):
    eager.check(name, backward=True)


def test_the_line_that_takes_most_is_the_first_row(eager):
    def took(name):  # by the recipe's own clock
        return sum(step[name] + step.get(f"{name}, backward", 0) for step in eager.truth)

    longest = max(LINES + LAYERS, key=took)
    assert eager.first_row() == f"planted_recipe.py:{line_of(longest)}"


def test_a_python_loop_has_its_lines_and_the_calls_beside_it_keep_theirs(tmp_path):
    recipe = RECIPE.with_name("plain_recipe.py")
    plain = planted(tmp_path, recipe=recipe)
    for names, stretch in ((["head", "body"], "loop"), (["sleep"], "sleep"), (["product"], "product")):
        took = np.array([step[stretch] for step in plain.truth])
        ratios = plain.costs(names, recipe=recipe) / took
        assert np.sort(np.abs(ratios - 1))[len(ratios) // 3] < 0.1, (stretch, ratios)


def test_owners_add_up_to_the_buckets(eager):
    adds_up(eager.profile.ownership)


def test_the_slow_twin_agrees_on_a_recording_with_lines(eager):
    recording = eager.profile.ownership.recording
    ownership = Ownership.of(attribute(recording.trace), None)
    adds_up(ownership)
    lines = msgspec.structs.replace(recording.lines, code=[])
    vars(ownership)["_read"] = replace(recording, lines=lines)
    agrees(ownership, 4)
