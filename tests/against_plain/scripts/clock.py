"""The clock of a script: with PLAIN_CLOCK it times its own steps, says what they took, and ends. PLAIN_COMPILE compiles
modules in place, as a capture does: `Sequential(…).compile()` alone compiles nothing, because Dynamo skips torch's own
frames, so `torch.compile` puts one of another kind around them."""

import array
import json
import os
import statistics
import sys
import time

WARM_UP, LEAST_STEPS, LEAST_S = 20, 40, 2.0


def compiled(*modules):
    """Compile them where that is wanted."""
    if os.environ.get("PLAIN_COMPILE"):
        import torch

        for module in modules:
            call = module._call_impl
            if type(module).__module__.startswith("torch."):
                call = torch._dynamo.external_utils.wrap_inline(call)
            module._compiled_call_impl = torch.compile(call)


def steps(most=5000):
    """`for step in steps():` is the loop of a training."""
    if not os.environ.get("PLAIN_CLOCK"):
        yield from range(most)
        return
    import resource

    ends, faults = (array.array("q", bytes(8 * (most + 1))) for _ in range(2))
    for step in range(most):
        ends[step] = time.perf_counter_ns()
        faults[step] = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        timed = step - WARM_UP
        if timed >= LEAST_STEPS and ends[step] - ends[WARM_UP] > LEAST_S * 1e9:
            times = [ends[at + 1] - ends[at] for at in range(WARM_UP, step)]
            told = {"step_ns": statistics.median(times), "faults": (faults[step] - faults[WARM_UP]) / timed}
            print(json.dumps(told))
            sys.stdout.flush()
            os._exit(0)
        yield step
