"""Distributed data parallel in one process."""

import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
os.environ.setdefault("MASTER_PORT", "29531")
dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo", rank=0, world_size=1)
rank = dist.get_rank()
device = torch.device(f"cuda:{rank}") if torch.cuda.is_available() else torch.device("cpu")
torch.manual_seed(0)
model = torch.nn.Linear(4, 2).to(device)
model = DDP(model, device_ids=[rank] if torch.cuda.is_available() else None)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(6):
    opt.zero_grad()
    loss = model(torch.randn(3, 4).to(device)).square().mean()  # copy _to_copy
    loss.backward()
    opt.step()
    dist.all_reduce(loss.detach())
dist.destroy_process_group()
