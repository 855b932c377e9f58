"""tracekit's own answers, asked as those of every tool are: nothing lost, nothing twice, nothing in the wrong part."""

import pytest
from real import TRACES, trace_path

from tests.compare.judged import judged
from tests.compare.measured import breakdowns, interpreter
from tests.compare.peers import ours
from tests.compare.recordings import RECORDINGS, Recording

_QUICK = ("rocm", "compiled", "cpu")  # `make compare` asks about all of them, and a test holds its answers to the same


@pytest.mark.traces
@pytest.mark.parametrize("recording", [each for each in RECORDINGS if each.id in _QUICK], ids=lambda each: each.id)
def test_every_nanosecond_is_in_one_bucket(recording: Recording) -> None:
    files = [trace_path(name) for name in recording.files]
    answers = breakdowns(ours.PEER, interpreter(ours.PEER, TRACES), files)
    assert not isinstance(answers, str), answers
    (way,) = judged(files, answers)
    assert (way["sum_off"], way["busy_off"]) == (0, 0)
