"""`python training.py STEPS FILE` trains some layers, and writes when each step ended to the file.

The times are in ns, by the clock and by processor time. It imports nothing from tracekit, because a capture of it is
measured.
"""

import gc
import json
import sys
import time

import torch

_SETTLED = 16  # steps: those before are left out

steps, file = int(sys.argv[1]), sys.argv[2]
torch.manual_seed(0)
torch.set_num_threads(1)
net = torch.nn.Sequential(*(layer for _ in range(4) for layer in (torch.nn.Linear(128, 128), torch.nn.ReLU())))
optimizer, x = torch.optim.Adam(net.parameters()), torch.randn(256, 128)
stamps = []
try:
    for step in range(steps):
        if step == _SETTLED:
            gc.collect()
        optimizer.zero_grad()
        net(x).square().mean().backward()
        optimizer.step()
        stamps.append((time.perf_counter_ns(), time.process_time_ns()))
finally:
    with open(file, "w") as out:
        json.dump(stamps, out)
