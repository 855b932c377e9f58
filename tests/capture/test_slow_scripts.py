"""Scripts whose steps take seconds: fewer steps are timed, and a pass reports its progress."""

import re

import pytest

from tests.capture.small_scripts import PLAIN, script
from tracekit.capture import messages, process
from tracekit.capture.child.timing import ALONE, ONE_OF_SEVERAL
from tracekit.capture.job import Job

MS = 1_000_000


@pytest.mark.parametrize(
    ("length", "step_ms", "steps"),
    [
        (ALONE, 0.001, 300),
        (ALONE, 10, 100),
        (ALONE, 100, 30),
        (ALONE, 2_000, 30),
        (ALONE, 4_000, 15),
        (ALONE, 60_000, 5),
        (ONE_OF_SEVERAL, 10, 50),
        (ONE_OF_SEVERAL, 100, 15),
        (ONE_OF_SEVERAL, 1_000, 10),
        (ONE_OF_SEVERAL, 60_000, 5),
    ],
)
def test_of_long_steps_fewer_are_timed(length, step_ms, steps):
    assert length.steps(round(step_ms * MS)) == steps


def test_a_pass_says_how_many_steps_are_left(tmp_path, monkeypatch):
    monkeypatch.setattr(messages, "_SAID_EVERY_S", 0)
    monkeypatch.setattr(process, "_LOOKED_EVERY_S", 0.05)
    said = []
    path = script(tmp_path, PLAIN + "    __import__('time').sleep(0.3)\n")
    job = Job(stage="profile", program=str(path), is_script=True, folder=str(tmp_path), steps=2, arguments=["6"])
    with process.scratch() as scratch:
        process.perform(job, scratch, tmp_path / "profile.log", 120, said.append)
    taken, wanted = re.fullmatch(r"  step (\d+) of about (\d+)", said[-1]).groups()
    assert 1 <= int(taken) <= 6
    assert int(wanted) == 10 + 2 + 6
