"""Many small ranks of a synthetic job: each works, then all of them reduce; some are late, and clocks differ."""

import json
import os
import signal
from pathlib import Path

from small import event, kernel, launch, op, step

from tracekit.ranks.readers import read_one

STEP_US, WORK_US, TRANSFER_US = 4000, 600, 100


def plant(folder, ranks, *, steps=3, late=None, skew_us=0, operators=0):
    """`late` maps a rank to the µs that it waits for data in each step; the clock of rank n is n × `skew_us` ahead."""
    late = late or {}
    folder.mkdir(exist_ok=True)
    for rank in range(ranks):
        content = {
            "schemaVersion": 1,
            "distributedInfo": {"rank": rank, "world_size": ranks, "backend": "nccl"},
            "traceEvents": [*_events(rank, steps, late, skew_us * rank, operators)],
        }
        (folder / f"rank{rank}.json").write_text(json.dumps(content))
    return folder


def _events(rank, steps, late, clock, operators):
    latest = max(late.values(), default=0)
    for number in range(steps):
        begins = 1000 + number * STEP_US + clock
        delay = late.get(rank, 0)
        yield step(number, begins, begins + STEP_US)
        if delay:
            yield event("user_annotation", "enumerate(DataLoader)#_SingleProcess.__next__", begins, begins + delay)
        for nth in range(operators):
            at = begins + delay + nth * (WORK_US - 100) / operators
            yield op(f"aten::op{nth % 7}", at, at + 0.4 * (WORK_US - 100) / operators)
        arrives, first = begins + delay + WORK_US, 10 * number + 1
        yield op("c10d::allreduce_", arrives - 20, arrives - 1)
        yield launch(arrives - 10, arrives - 2, first)
        ends = 1000 + number * STEP_US + clock + latest + WORK_US + TRANSFER_US
        yield kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", arrives, ends, first)


def read_or_die(path: Path, infer_steps: bool):
    """Read like any reader, except that the process is killed when it reads rank 2."""
    if "rank2" in path.name:
        os.kill(os.getpid(), signal.SIGKILL)
    return read_one(path, infer_steps)
