"""A training loop in which nothing is wrong: the host runs ahead, and the GPU is never out of work."""

from __future__ import annotations

from pathlib import Path

from small import Event, kernel, launch, op, step, write

STEP_US = 10_000.0
KERNELS = 20
KERNEL_US = STEP_US / KERNELS
HOST_US = 60.0  # until the next operator
SHAPES = {"args": {"Input Dims": [[4096, 1024], [1024, 4096]], "Input type": ["c10::BFloat16"] * 2}}
FILLED = {"est. achieved occupancy %": 12, "blocks per SM": 4.7}  # as products on tensor cores are
PACED_US = 499.0  # the same for a host that is hardly ahead


def events(steps: int = 6, waits: bool = False) -> list[Event]:
    """Steps of 10 ms, each issued in 1.2 ms, so that the queue is always full.

    If the host `waits` at the end of each step and is hardly ahead, the GPU is without work for a moment.
    """
    made: list[Event] = []
    free, correlation, t = 0.0, 0, 1000.0
    for number in range(steps):
        begun = t if waits else 1000.0 + STEP_US * number
        t = begun + 5
        for _ in range(KERNELS):
            correlation += 1
            made += [op("aten::mm", t, t + 50) | SHAPES, launch(t + 30, t + 40, correlation)]
            free = max(free, t + 45)
            product = kernel("sm80_xmma_gemm_bf16bf16_tn", free, free + KERNEL_US, correlation)
            product["args"] |= FILLED
            made.append(product)
            free += KERNEL_US
            t += PACED_US if waits else HOST_US
        if waits:
            made.append(launch(t, free + 2, 1 << 20, "cudaDeviceSynchronize"))
            t = free + 10
        made.append(step(number, begun, t))
    return made


def healthy(path: Path, steps: int = 6, waits: bool = False) -> Path:
    """Write that trace to a file."""
    return write(path, *events(steps, waits))
