"""Long loops in which nothing is wrong: at most one step in 10,000 is called slow, whatever their noise is like."""

import os

import pytest

from tests.watched.planted_steps import QUIET, caught, false_alarms

pytestmark = pytest.mark.skipif(not os.environ.get("TRACEKIT_VERIFY"), reason="TRACEKIT_VERIFY is not set: make verify")
STEPS, MS = 50_000, 1_000_000
TOGETHER = pytest.mark.parametrize("together", [1, 64])  # as in Python, and as the compiled tally has it


@TOGETHER
@pytest.mark.parametrize("usual_ns", [10 * MS, 100 * MS])
@pytest.mark.parametrize("noise", QUIET)
def test_at_most_one_step_in_10_000_raises_an_alarm(noise, usual_ns, together, record_property):
    alarms = false_alarms(QUIET[noise], STEPS, usual_ns, 2, together)
    record_property("measured", f"{alarms} of {STEPS} steps")
    assert alarms <= STEPS / 10_000


@TOGETHER
@pytest.mark.parametrize("usual_ns", [10 * MS, 100 * MS])
@pytest.mark.parametrize("rate", [0.002, 0.01, 0.025])
@pytest.mark.parametrize(
    "noise", ["constant", "gauss 2 %", "quantised", "t with 3 degrees of freedom, 1 %", "wandering pace"]
)
def test_a_step_of_1_6_times_the_usual_is_caught(noise, rate, usual_ns, together, record_property):
    hits, planted = caught(QUIET[noise], STEPS, usual_ns, 1.6, rate, 2, together)
    record_property("measured", f"{hits} of {planted}")
    assert hits >= 0.95 * planted
