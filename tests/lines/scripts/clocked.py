"""A clock for scripts: how long stretches of a step take, by the script's own account."""

import json
import time
from functools import partial

TOOK = {}
NOW = time.perf_counter_ns


class clock:  # noqa: N801
    """`with clock("product"): …` adds what the block takes to the step."""

    def __init__(self, name):
        self.name = name

    def __enter__(self):
        self.began = NOW()

    def __exit__(self, *_):
        TOOK[self.name] = TOOK.get(self.name, 0) + NOW() - self.began


def step_ended(file):
    """Note what the step took, and when it ended."""
    with open(file, "a") as written:
        written.write(json.dumps({"end": time.time_ns(), "took": TOOK}) + "\n")
    TOOK.clear()


def writing_to(file):
    """The same for a file that is known already."""
    return partial(step_ended, file)
