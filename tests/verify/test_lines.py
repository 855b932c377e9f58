"""Lines that take known time are given that time, eager and compiled; and the line that takes most comes first."""

import os

import pytest

from tests.lines.planting import LAYERS, LINES, check, check_backward, first_row, line_of, planted
from tracekit.run import Requested

VARIANTS = {"eager": Requested(compile=False), "compiled": Requested(compile=True, backend="inductor")}


@pytest.mark.skipif(not os.environ.get("TRACEKIT_VERIFY"), reason="TRACEKIT_VERIFY is not set: make verify")
@pytest.mark.parametrize("longest", LINES)
@pytest.mark.parametrize("variant", VARIANTS)
def test_lines_cost_what_they_take(tmp_path, variant, longest):
    profile, truth = planted(tmp_path, VARIANTS[variant], longest=longest)
    for name in LINES + LAYERS:
        check(profile, truth, name)
    check_backward(profile, truth)
    assert first_row(profile) == f"planted.py:{line_of(longest)}"
