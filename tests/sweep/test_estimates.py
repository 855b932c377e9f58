"""How long the cells of a sweep that are left will take, judging by all kinds of those that are finished."""

import pytest

from tracekit.study import Cell, Record
from tracekit.sweep.runner import _expected_seconds


def cell(recipe, variant):
    return Cell(program=f"{recipe}.py", variant=variant)


def record(recipe, variant, seconds, outcome="ok"):
    return Record(cell=cell(recipe, variant), outcome=outcome, error=None, started="", seconds=seconds)


def test_a_variant_that_was_slower_elsewhere_is_expected_to_be_slower_here():
    finished = [record("a", "eager", 10.0), record("a", "compiled", 70.0), record("b", "eager", 10.0)]
    (left,) = [_expected_seconds(finished, [cell("b", "compiled")])]
    assert left == pytest.approx(10 * 70 / 30)
    assert _expected_seconds(finished, [cell("a", "compiled")] * 2) == 140


def test_what_failed_early_does_not_shorten_the_estimate():
    finished = [record("a", "eager", 60.0), record("a", "eager", 1.0, "error")]
    assert _expected_seconds(finished, [cell("a", "eager")]) == 60
    assert _expected_seconds(finished[1:], [cell("a", "eager")]) == 1
    assert _expected_seconds([], [cell("a", "eager")]) is None
