"""Ranks that train together under torchrun or `tracekit capture --nproc`, one of them slower if requested.

`--late RANK --how python|dataload|cpu_compute|compile --ms M`; without --how, all are alike. With `--arrivals FOLDER`,
each rank writes to FOLDER/PORT-RANK between which two moments it began to reduce its gradients, in ns of the clock that
all processes share; and the late rank is late by at least M ms on whatever machine, because it waits until all others
have arrived.
"""

import argparse
import os
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.utils.data import DataLoader, Dataset


class Slow(Dataset):
    def __init__(self, delay):
        self.delay = delay

    def __len__(self):
        return 10_000

    def __getitem__(self, index):
        self.delay()
        return torch.ones(8), torch.zeros(1)


class Arrivals:
    """When this rank began to reduce its gradients, and how often the others have."""

    def __init__(self, folder):
        self._folder, self._port = Path(folder), os.environ["MASTER_PORT"]
        self._own = self._of(dist.get_rank())
        self._own.touch()

    def _of(self, rank):
        return self._folder / f"{self._port}-{rank}"

    def reduce_and_note(self, _, bucket):
        """Reduces a bucket of gradients, and notes the moments before and after it was submitted."""
        since = time.perf_counter_ns()
        with self._own.open("a") as file:
            print(since, end=" ", file=file, flush=True)  # for the late rank, which waits for it
            reduced = allreduce_hook(None, bucket)
            print(time.perf_counter_ns(), file=file)
        return reduced

    def all_others_have_arrived(self):
        """Whether each of the others has begun one reduction more than this rank; nobody waits before the second one,
        for which DistributedDataParallel makes all ranks meet already in the forward pass."""
        due = len(self._own.read_text().splitlines())
        if due == 1:
            return True
        others = (self._of(rank) for rank in range(dist.get_world_size()) if rank != dist.get_rank())
        return all(path.exists() and len(path.read_text().splitlines()) > due for path in others)


def wait(seconds, arrivals, passing_time):
    """Passes time until the other ranks have arrived, unless they are gone, and then for so long."""
    gone = time.perf_counter() + 60
    while arrivals is not None and not arrivals.all_others_have_arrived() and time.perf_counter() < gone:
        passing_time(0.002)
    passing_time(seconds)


def compute(seconds):
    a = torch.rand(200, 200)
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        torch.mm(a, a)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--late", type=int, default=-1)
    parser.add_argument("--how", default="")
    parser.add_argument("--ms", type=float, default=50)
    parser.add_argument("--arrivals", default="")
    parser.add_argument("--steps", type=int, default=10_000)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = nn.parallel.DistributedDataParallel(nn.Linear(8, 1))
    arrivals = Arrivals(args.arrivals) if args.arrivals else None
    if arrivals is not None:
        model.register_comm_hook(None, arrivals.reduce_and_note)

    def delay(how, passing_time=time.sleep):
        if how == args.how and dist.get_rank() == args.late:
            wait(args.ms / 1000, arrivals, passing_time)

    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    data = DataLoader(Slow(lambda: delay("dataload")))
    for step, (x, y) in enumerate(data):
        if step == args.steps:
            break
        delay("python")
        delay("cpu_compute", compute)
        if args.how == "compile" and dist.get_rank() == args.late:
            with torch.profiler.record_function("compile (dynamo_timed)"):  # what torch.compile writes around compiling
                delay("compile")
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
