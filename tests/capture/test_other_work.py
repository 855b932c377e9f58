"""Other work on the machine is noticed at once, and a core is left to it."""

import sys

import pytest

from tests.verify.programs import beside
from tracekit.capture import other_work

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux says how many processes run")


@pytest.mark.parametrize(
    ("running", "cores", "threads"),
    [(0.0, 2, None), (0.4, 2, None), (0.6, 2, 1), (5.0, 16, 15), (9.0, 1, None), (2.0, None, None), (None, 2, None)],
)
def test_a_core_is_left_to_other_work(monkeypatch, running, cores, threads):
    monkeypatch.setattr(other_work, "running_beside", lambda: running)
    assert other_work.threads_beside(cores) == threads


def test_processes_that_run_are_counted():
    with beside(2):
        assert max(other_work.running_beside() for _ in range(5)) >= 1
