"""A recipe with plain Python between a sleep and a product; it measures its own stretches, as `planted_recipe` does."""

import json
import time
from itertools import pairwise
from types import SimpleNamespace

import torch

PARAMS = {"truth": "", "rounds": 1_200_000, "sleep": 0.12}
now = time.time_ns


def setup(ctx):
    torch.set_num_threads(1)
    weight = torch.randn(500, 500)

    def step():
        weight.detach()
        at = [now()]
        time.sleep(ctx.sleep)  # sleep
        at.append(now())
        total = 0
        for number in range(ctx.rounds):  # head
            total += number * number  # body
        at.append(now())
        product = torch.mm(weight, weight)  # product
        at.append(now())
        sleep, loop, mm = (end - start for start, end in pairwise(at))
        with open(ctx.truth, "a") as file:
            file.write(json.dumps({"start": at[0], "sleep": sleep, "loop": loop, "product": mm}) + "\n")
        return product[0, 0]

    return SimpleNamespace(step=step)
