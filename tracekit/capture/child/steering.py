"""A script chooses its device by itself: leave it no choice but the one that is to be measured."""

import os
from typing import Any

from msgspec.structs import replace

from tracekit.capture.environment import holds_tensors, other_accelerator
from tracekit.capture.job import Job

_hidden: list[str] = []  # the accelerator that this process must not use


def steered(job: Job) -> Job:
    """The job as the script will find it. Among the devices left the one wanted is the first."""
    if job.device == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
        if other := other_accelerator():
            _hide(other)
    kind, _, number = job.device.partition(":")
    if kind != "cuda" or not number:
        return job
    visible = [each.strip() for each in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if each.strip()]
    os.environ["CUDA_VISIBLE_DEVICES"] = visible[int(number)] if int(number) < len(visible) else number
    return replace(job, device="cuda")


def used_all_the_same() -> str | None:
    """An accelerator that was hidden, and has tensors on it: the script never asked whether there is one."""
    return next(filter(holds_tensors, _hidden), None)


def _hide(kind: str) -> None:
    """One that cannot be measured, as Apple's or Intel's: the answer to whether there is one is no."""
    import torch

    _hidden.append(kind)
    for holder in (torch.accelerator, torch.backends.mps, torch.mps, torch.xpu):
        for name, answer in (("is_available", False), ("device_count", 0), ("current_accelerator", None)):
            if hasattr(holder, name):
                setattr(holder, name, _always(answer))


def _always(answer: Any) -> Any:
    return lambda *_, **__: answer
