"""Several recordings in one process: some profilers lose the first kernels of the later ones, or all of them."""

import time

from tests.gpu.claims import Claims
from tests.gpu.taking import take

_SESSIONS = 5
_IDLE_S = 2  # the loss grows with the time for which the GPU idles in between


def check(claims: Claims) -> None:
    """A capture records three windows in a process, and all but the first have a warm-up."""
    import torch

    x = torch.ones(1024, device="cuda")

    def step() -> None:
        for _ in range(20):
            x.add_(1.0)
            torch.cuda.synchronize()

    for warmup in (1, 0):
        seen = []
        for number in range(_SESSIONS):
            taken = take(claims, f"session-{warmup}-{number}", step, 2, warmup)
            seen.append(len(taken.rows.by["kernel"]))
            time.sleep(_IDLE_S)
        claims.that(seen == [40] * _SESSIONS, f"sessions: nothing is lost, warm-up {warmup}", kernels=seen)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(30):
            x.add_(1.0)
    kernels = len(take(claims, "graph-after-sessions", graph.replay, 4, 2).rows.by["kernel"])
    claims.that(kernels == 120, "sessions: a graph recorded between them shows its kernels", kernels=kernels)
