"""A model on several GPUs, as under torchrun: `--nproc 2` with `FAKECUDA_DEVICES=2`."""

import os
import sys

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl")
    torch.manual_seed(rank)
    model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10)).cuda()
    model = DistributedDataParallel(model, device_ids=[rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(int(sys.argv[1])):
        x, y = torch.randn(256, 512).cuda(), torch.randint(10, (256,)).cuda()
        optimizer.zero_grad()
        loss = cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    gathered = [torch.empty(2, dtype=torch.long, device="cuda") for _ in range(dist.get_world_size())]
    dist.all_gather(gathered, torch.tensor([rank, 7], device="cuda"))
    os.write(1, f"{[part.tolist() for part in gathered]}\n".encode())  # at once: the ranks share it
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
