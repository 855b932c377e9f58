"""A training loop in which nothing is wrong: the host runs ahead, and the GPU is never out of work."""

from __future__ import annotations

from pathlib import Path

from small import Event, kernel, launch, op, step, write

STEP_US = 10_000.0
KERNELS = 20
KERNEL_US = STEP_US / KERNELS
HOST_US = 60.0  # of an operator that launches one kernel


def events(steps: int = 6) -> list[Event]:
    """Steps of 10 ms, issued in 1.2 ms each; the first activity starts at 1,030 µs, and then the queue is full."""
    made: list[Event] = []
    free, correlation = 0.0, 0
    for number in range(steps):
        t = begun = 1000.0 + STEP_US * number
        for _ in range(KERNELS):
            correlation += 1
            made += [op("aten::mm", t, t + 50), launch(t + 10, t + 20, correlation)]
            free = max(free, t + 30)
            made.append(kernel("sm80_xmma_gemm_bf16bf16_tn", free, free + KERNEL_US, correlation))
            free += KERNEL_US
            t += HOST_US
        made.append(step(number, begun, t))
    return made


def healthy(path: Path, steps: int = 6) -> Path:
    """The trace as a file."""
    return write(path, *events(steps))
