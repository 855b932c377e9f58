"""What the compiled tally notes is what Python notes, in trainings of any kind."""

import mmap
import random

import pytest
import torch

from tests.watching import planted
from tracekit.watched import Record
from tracekit.watching import observation, watch
from tracekit.watching.tally import PlainTally, Tally

if Tally is PlainTally:
    pytest.skip("nothing is compiled here", allow_module_level=True)

STEPS = 700
USUAL_S = (0.0002, 0.004)  # such short steps are learnt from now and then


def slowly(batches, pace, seconds):
    for batch in batches:
        pace.sleep(seconds)
        yield batch


def trained(folder, kind, seed, marks, monkeypatch):
    """A training in which all kinds of things happen, the same for both kinds; its steps as they were recorded."""
    draw, pace = random.Random(seed), planted.Clocks(monkeypatch, kind)
    monkeypatch.setattr(observation, "time_ns", lambda: 10**18 + pace.host_ns)
    usual_s = draw.choice(USUAL_S)
    parameter = torch.nn.Parameter(torch.ones(4))
    optimizers = [torch.optim.SGD([parameter], lr=1e-3), torch.optim.Adam([parameter], lr=1e-3)]
    with watch(folder, traces_per_hour=0) as watched:
        for number in range(STEPS):
            for _ in watched.batches(slowly(range(draw.randrange(3)), pace, usual_s / 10)):
                pass
            pace.work(usual_s)
            if draw.random() < 0.3:
                pace.wait_for_core(usual_s * draw.random())
            if draw.random() < 0.01:
                watched.apart()
            if draw.random() < 0.004:  # so rarely that they never become usual
                pace.sleep(20 * 0.004)
            if draw.random() < 0.01:
                watched.summary()
            if number == STEPS // 2:
                pace.sleep(60)  # a minute ends, too
            parameter.sum().backward()
            for optimizer in optimizers[: draw.randrange(1, 3)]:
                optimizer.step()
            if marks:
                watched.step()
    (path,) = folder.glob("*.watch")
    record = Record.open(path)
    # What is usual may follow 64 steps later; collections and the process's memory are those of the real process.
    steps = [step._replace(usual_ns=0, limit_ns=0, collections=0, peak_bytes=0) for step in record.steps.entries()]
    return steps, record.minutes.entries()


@pytest.mark.parametrize("marks", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_both_note_the_same(tmp_path, monkeypatch, seed, marks):
    compiled, plain = (
        trained(tmp_path / kind.__module__, kind, seed, marks, monkeypatch) for kind in (Tally, PlainTally)
    )
    assert len(compiled[0]) in (STEPS, STEPS + 1)
    for one, other in zip(compiled[0], plain[0], strict=True):
        assert one == other
    assert compiled[1] == plain[1]


def test_most_steps_are_noted_quickly(tmp_path, monkeypatch):
    ends = []
    end = observation.Observation.end
    monkeypatch.setattr(observation.Observation, "end", lambda *given: ends.append(0) or end(*given))
    pace = planted.Clocks(monkeypatch)
    parameter = torch.nn.Parameter(torch.ones(4))
    optimizer = torch.optim.SGD([parameter], lr=1e-3)
    with watch(tmp_path, traces_per_hour=0):
        for _ in range(64 * 30):
            parameter.sum().backward()
            pace.work(0.0002)
            optimizer.step()
    assert len(ends) < 64 + 30 + 5


def test_a_watch_may_be_closed_while_an_event_is_made(tmp_path):
    """A handler of a signal closes it, for example."""
    tally, memory = Tally(), mmap.mmap(-1, 16 + 21 * 8)

    def make():
        tally.release()
        memory.close()

    tally.use_gpu(make, lambda *_: None, lambda _: 7, lambda: False, lambda _: True, lambda *_: 1.0, 0)
    tally.stream, tally.stream_key, tally.attend = 1, 7, print
    tally.has_marks, tally.limit_ns = True, 1 << 62
    assert tally.write_to(memory, 0, 8, 1)
    assert not tally.end(None)
    assert tally.number == 0


def test_a_ring_must_be_in_the_memory():
    tally = Tally()
    memory = bytearray(4096)
    assert tally.write_to(memory, 0, 8, 24)
    with pytest.raises(BufferError):
        memory.clear()
    tally.release()
    for count_at, ring_at, capacity in [
        (0, 8, 25),
        (8, 8, 1),
        (-8, 8, 1),
        (0, 5000, 1),
        (0, 8, 0),
        (0, 12, 1),
        (4, 16, 1),
    ]:
        with pytest.raises(ValueError, match="not in this memory"):
            tally.write_to(memory, count_at, ring_at, capacity)
    memory.clear()
