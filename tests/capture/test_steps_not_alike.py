"""A script whose steps are of two kinds: the step time is the mean over whole periods, not the time of one kind."""

import statistics

import pytest

from tests.capture.small_scripts import PLAIN, script
from tracekit.capture import passes, process
from tracekit.capture.job import Job
from tracekit.capture.options import Options

LONGER = "range(steps):\n    __import__('time').sleep((0.002, 0.04)[_ % 2])"
EVERY_OTHER_STEP_IS_LONGER = PLAIN.replace("range(steps):", LONGER)


def test_a_script_of_two_kinds_of_steps(tmp_path):
    path = script(tmp_path, EVERY_OTHER_STEP_IS_LONGER)
    job = Job(stage="measure", program=str(path), is_script=True, folder=str(tmp_path), warmup=4, arguments=["60"])
    with process.scratch() as scratch:
        result = process.perform(job, scratch, tmp_path / "measure.log", 120)
    (measured,) = passes.finished(job, result, began=0, load=None, options=Options("")).measured.passes
    assert (measured.alike, measured.period) == (False, 2)
    kinds = [statistics.median(measured.step_all_ns[phase::2]) for phase in (0, 1)]
    assert measured.step_ns == pytest.approx(statistics.fmean(kinds), rel=0.05)
    assert measured.step_ns == result.measured.step_ns
    assert max(kinds) - min(kinds) > 20_000_000
