"""Ranks that train together under torchrun or `tracekit capture --nproc`, one of them slower if requested.

`--late RANK --how python|dataload|cpu_compute|compile --ms M`; without --how, all are alike. With `--arrivals FOLDER`,
each rank writes to FOLDER/RANK when it began to reduce its gradients, in ns of the clock that all processes share.
"""

import argparse
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.utils.data import DataLoader, Dataset


class Slow(Dataset):
    def __init__(self, seconds):
        self.seconds = seconds

    def __len__(self):
        return 10_000

    def __getitem__(self, index):
        time.sleep(self.seconds)
        return torch.ones(8), torch.zeros(1)


def compute(seconds):
    a = torch.rand(200, 200)
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        torch.mm(a, a)


def reduce_and_note(path, bucket):
    with open(path, "a") as file:
        print(time.perf_counter_ns(), file=file)
    return allreduce_hook(None, bucket)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--late", type=int, default=-1)
    parser.add_argument("--how", default="")
    parser.add_argument("--ms", type=float, default=50)
    parser.add_argument("--arrivals", default="")
    parser.add_argument("--steps", type=int, default=10_000)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    seconds = args.ms / 1000 if dist.get_rank() == args.late else 0.0
    torch.manual_seed(0)
    model = nn.parallel.DistributedDataParallel(nn.Linear(8, 1))
    if args.arrivals:
        model.register_comm_hook(f"{args.arrivals}/{dist.get_rank()}", reduce_and_note)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    data = DataLoader(Slow(seconds if args.how == "dataload" else 0.0))
    for step, (x, y) in enumerate(data):
        if step == args.steps:
            break
        if args.how == "python":
            time.sleep(seconds)
        if args.how == "cpu_compute":
            compute(seconds)
        if args.how == "compile" and seconds:
            with torch.profiler.record_function("compile (dynamo_timed)"):  # what torch.compile writes around compiling
                time.sleep(seconds)
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
