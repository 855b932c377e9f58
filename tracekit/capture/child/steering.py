"""A script chooses its device itself, so it is offered only the device that is to be measured."""

import os
from typing import Any

from msgspec.structs import replace

from tracekit.capture.environment import holds_tensors, other_accelerator
from tracekit.capture.job import Job

_hidden: list[str] = []  # the accelerator that this process must not use


def steered(job: Job) -> Job:
    """The job as the script will see it: the wanted device is the first of those that remain."""
    if job.device == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
        if accelerator := other_accelerator():
            _hide(accelerator)
    kind, _, number = job.device.partition(":")
    if kind != "cuda" or not number:
        return job
    visible = [gpu.strip() for gpu in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if gpu.strip()]
    os.environ["CUDA_VISIBLE_DEVICES"] = visible[int(number)] if int(number) < len(visible) else number
    return replace(job, device="cuda")


def used_all_the_same() -> str | None:
    """A hidden accelerator that has tensors on it nevertheless, because the script never asked whether there is one."""
    return next(filter(holds_tensors, _hidden), None)


def _hide(kind: str) -> None:
    """Hide an accelerator that cannot be measured, such as Apple's or Intel's: torch reports that there is none."""
    import torch

    _hidden.append(kind)
    for holder in (torch.accelerator, torch.backends.mps, torch.mps, torch.xpu):
        for name, answer in (("is_available", False), ("device_count", 0), ("current_accelerator", None)):
            if hasattr(holder, name):
                setattr(holder, name, _always(answer))


def _always(answer: Any) -> Any:
    return lambda *_, **__: answer
