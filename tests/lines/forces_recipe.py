"""A recipe that trains on forces, the gradient of an energy: each step differentiates twice. It measures its own
stretches, as `planted_recipe` does.
"""

import json
import time
from itertools import pairwise
from types import SimpleNamespace

import torch

PARAMS = {"truth": ""}
ATOMS, HIDDEN = 3000, 192
now = time.time_ns


def setup(ctx):
    torch.set_num_threads(1)
    first, second, last = torch.nn.Linear(3, HIDDEN), torch.nn.Linear(HIDDEN, HIDDEN), torch.nn.Linear(HIDDEN, 1)
    optimizer = torch.optim.SGD([*first.parameters(), *second.parameters(), *last.parameters()])
    places, wanted = torch.randn(ATOMS, 3), torch.randn(ATOMS, 3)

    def step():
        positions = places.clone().requires_grad_(True)
        optimizer.zero_grad()
        at = [now()]
        energy = last(torch.tanh(second(torch.tanh(first(positions))))).sum()  # energy
        at.append(now())
        (forces,) = torch.autograd.grad(energy, positions, create_graph=True)  # forces
        at.append(now())
        loss = (forces - wanted).pow(2).mean()
        at.append(now())
        loss.backward()  # backward
        at.append(now())
        optimizer.step()
        energy_ns, forces_ns, _, backward_ns = (end - start for start, end in pairwise(at))
        truth = {"start": at[0], "energy": energy_ns, "forces": forces_ns, "backward": backward_ns}
        with open(ctx.truth, "a") as file:
            file.write(json.dumps(truth) + "\n")
        return loss

    return SimpleNamespace(step=step)
