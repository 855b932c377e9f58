"""In the form of pytorch/examples' distributed/ddp: DistributedDataParallel, here in a group of one process."""

import argparse
import os
import sys
import tempfile

import torch
import torch.distributed as dist
from steplog import StepLog
from torch import nn, optim
from torch.nn.parallel import DistributedDataParallel as DDP


class ToyModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.net1 = nn.Linear(10, 10)
        self.relu = nn.ReLU()
        self.net2 = nn.Linear(10, 5)

    def forward(self, x):
        return self.net2(self.relu(self.net1(x)))


def demo_basic(args):
    model = ToyModel()
    ddp_model = DDP(model)
    if args.compile:
        ddp_model = torch.compile(ddp_model, backend=args.backend)
    loss_fn = nn.MSELoss()
    optimizer = optim.SGD(ddp_model.parameters(), lr=0.001)
    log = StepLog()
    for epoch in range(args.epochs):
        optimizer.zero_grad()
        outputs = ddp_model(torch.randn(20, 10))
        labels = torch.randn(20, 5)
        loss = loss_fn(outputs, labels)
        loss.backward()
        optimizer.step()
        log(loss)
        if epoch % 50 == 49 and dist.get_rank() == 0:
            torch.save(ddp_model.state_dict(), "checkpoint.pt")
        dist.barrier()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--backend", default="inductor")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        # What torchrun sets; a file is the meeting point, for a port may be taken.
        rank, world_size = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
        dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=world_size)
        torch.manual_seed(0)
        demo_basic(args)
        dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())
