"""Lines that take a known time get that time, eager and compiled, and the line that takes most comes first."""

import os

import pytest

from tests.lines.planting import LAYERS, LINES, line_of, planted
from tracekit.run import Requested

VARIANTS = {"eager": Requested(compile=False), "compiled": Requested(compile=True, backend="inductor")}
SIZE = 640  # a compiled layer's own kernel is nearly all of its call: what surrounds it is for other lines


@pytest.mark.skipif(not os.environ.get("TRACEKIT_VERIFY"), reason="TRACEKIT_VERIFY is not set: make verify")
@pytest.mark.parametrize("longest", LINES)
@pytest.mark.parametrize("variant", VARIANTS)
def test_lines_cost_what_they_take(tmp_path, variant, longest):
    recipe = planted(tmp_path, VARIANTS[variant], longest=longest, times=40, size=SIZE)
    for name in LINES + LAYERS:
        recipe.check(name)
    for name in LAYERS:
        recipe.check(name, backward=True)
    assert recipe.first_row() == f"planted_recipe.py:{line_of(longest)}"
