"""Lines that take known time are given that time."""

import pytest

from tests.lines.planting import LAYERS, LINES, check, check_backward, first_row, line_of, planted


@pytest.fixture(scope="module")
def eager(tmp_path_factory):
    return planted(tmp_path_factory.mktemp("planted"))


@pytest.mark.parametrize("name", LINES + LAYERS)
def test_a_line_costs_what_it_takes(eager, name):
    check(*eager, name)


def test_backward_is_for_the_lines_of_its_forward(eager):
    check_backward(*eager)


def test_the_line_that_takes_most_is_the_first_row(eager):
    assert first_row(eager.profile) == f"planted.py:{line_of('sleep')}"
