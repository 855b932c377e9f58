"""Slow steps planted in real trainings, in real time: at least 95 % are caught, at least 90 % of these with the right
cause, and of quiet steps at most one in 10,000 is called slow. Of two ranks, the late one is told."""

import os
import random
import time
from collections import Counter

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from tests.watching import planted
from tracekit.watched import Record

STEPS = planted.FIRST + 61 * planted.EVERY  # 60 slow ones
pytestmark = pytest.mark.skipif(not os.environ.get("TRACEKIT_VERIFY"), reason="TRACEKIT_VERIFY is not set: make verify")
CAUSES = ("sleep", "batch", "worker", "compilation", "collection", "work")
EVERY, RANK_STEPS = 40, 1200


@pytest.fixture(autouse=True)
def one_thread(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def test_planted_slow_steps_in_real_time(tmp_path, record_property):
    total = Counter()
    for cause in CAUSES:
        found = planted.trained(tmp_path / cause, cause, STEPS, planted.Real())
        print(cause, found)
        total.update(found._asdict())
    record_property("found", str(dict(total)))
    assert total["caught"] >= 0.95 * total["planted"]
    assert total["right"] >= 0.90 * total["caught"]
    assert total["alarms"] <= max(1, total["quiet"] / 10_000)


def delays():
    draw = random.Random(0)
    return {start + draw.randrange(EVERY // 2) for start in range(planted.FIRST, RANK_STEPS, EVERY)}


def train(rank, folder, port):
    from tracekit.watching import watch

    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=2)
    parameter = torch.nn.Parameter(torch.ones(4))
    optimizer = torch.optim.SGD([parameter], lr=1e-3)
    with watch(folder, ranks="all", traces_per_hour=0) as watched:
        delayed = planted.Batches(RANK_STEPS, planted.Real(), delays() if rank == 1 else ())
        for batch in watched.batches(delayed[at] for at in range(RANK_STEPS)):
            optimizer.zero_grad()
            (parameter * batch).sum().backward()
            dist.all_reduce(parameter.grad)
            time.sleep(planted.USUAL_S)
            optimizer.step()
    dist.destroy_process_group()


def test_of_two_ranks_the_late_one_is_told(tmp_path, record_property):
    from tracekit.watched.reading import read_watch

    mp.spawn(train, args=(str(tmp_path), "29517"), nprocs=2)
    records = [Record.open(path) for path in sorted(tmp_path.glob("*.watch"))]
    assert sorted(record.facts.rank for record in records) == [0, 1]
    assert len({record.facts.job for record in records}) == 1
    assert records[0].facts.job
    watched = read_watch(tmp_path)
    late = delays()
    told = {slow.step.number: slow for slow in watched.slow if slow.step.number in late}
    right = sum(slow.late_rank == 1 for slow in told.values())
    record_property("late", f"{len(late)} planted, {len(told)} slow on rank 0, {right} told")
    assert len(told) >= 0.95 * len(late)
    assert right >= 0.90 * len(told)
