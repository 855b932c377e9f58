"""Planted slow steps are caught, with their causes, and nothing else is; on clocks that are set, not on real time."""

import pytest
import torch

from tests.watching import planted
from tracekit.watched import Cause, Flag, Record
from tracekit.watching import watch
from tracekit.watching.tally import PlainTally, Tally

KINDS = pytest.mark.parametrize("kind", [Tally, PlainTally])  # the same where nothing is compiled


@KINDS
@pytest.mark.parametrize("cause", ["sleep", "batch", "compilation", "collection", "work", "core"])
def test_slow_steps_are_caught_with_their_cause(tmp_path, monkeypatch, cause, kind):
    count = planted.FIRST + 6 * planted.EVERY
    found = planted.trained(tmp_path, cause, count, planted.Clocks(monkeypatch, kind))
    assert found.planted == found.caught == found.right == 5
    assert found.alarms == 0
    assert found.quiet > 200


@KINDS
def test_a_list_that_grows_is_a_trend(tmp_path, monkeypatch, kind):
    pace = planted.Clocks(monkeypatch, kind)
    parameter = torch.nn.Parameter(torch.ones(4))
    optimizer = torch.optim.SGD([parameter], lr=1e-3)
    kept = []
    with watch(tmp_path, traces_per_hour=0):
        for _ in range(600):
            parameter.sum().backward()
            kept.append(1)
            pace.work(planted.USUAL_S * (1 + len(kept) / 600))
            optimizer.step()
    (path,) = tmp_path.glob("*.watch")
    told = Record.open(path).slow.entries()
    assert [step.cause for step in told] == [Cause.TREND]
    assert not told[0].flags & Flag.SLOW


@KINDS
def test_a_quiet_loop_raises_no_alarm(tmp_path, monkeypatch, kind):
    pace = planted.Clocks(monkeypatch, kind)
    parameter = torch.nn.Parameter(torch.ones(4))
    optimizer = torch.optim.SGD([parameter], lr=1e-3)
    with watch(tmp_path, traces_per_hour=0):
        for _ in range(3000):
            parameter.sum().backward()
            pace.work(planted.USUAL_S)
            optimizer.step()
    (path,) = tmp_path.glob("*.watch")
    assert Record.open(path).slow.entries() == []
    assert len(Record.open(path).steps.entries()) == 3000
