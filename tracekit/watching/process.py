"""What is watched: the process, its device, its rank, and the job that it belongs to."""

import os
import platform
import sys
import time

import torch

from tracekit.capture import environment
from tracekit.capture.device import CPU, GPU, gpu
from tracekit.installed import version
from tracekit.watched import Facts

# What launchers set, the same in all processes of one start: torchrun, then Slurm.
_JOB = ("TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RESTART_COUNT")
_OFF = "TRACEKIT_OFF"
_SLURM = ("SLURM_JOB_ID", "SLURM_STEP_ID")


def device() -> int | None:
    """The number of the GPU that this process uses; None if it has not used any."""
    return int(gpu().current_device()) if gpu().is_available() and gpu().is_initialized() else None


def is_switched_off() -> bool:
    """Whether nothing of ours is to run in a training."""
    return os.environ.get(_OFF, "0") not in ("", "0")


def rank() -> tuple[int, int]:
    """The rank of this process, and how many there are."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank(), torch.distributed.get_world_size()
    try:
        return int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    except (KeyError, ValueError):
        return 0, 1


def script() -> str:
    """The program that runs; empty in an interpreter or a notebook."""
    path = getattr(sys.modules.get("__main__"), "__file__", None)
    return os.path.abspath(path) if path else ""


def facts(step: str, clock: str, gpu_number: int | None, loader: str) -> Facts:
    """The facts of a record that begins now."""
    number, ranks = rank()
    return Facts(
        process=os.getpid(),
        began_ns=time.time_ns(),
        script=script(),
        device=CPU if gpu_number is None else f"{GPU}:{gpu_number}",
        device_name=environment.processor() if gpu_number is None else str(gpu().get_device_name(gpu_number)),
        clock=clock,
        rank=number,
        ranks=ranks,
        step=step,
        job=_job(),
        loader=loader,
        versions={"python": platform.python_version(), "torch": str(torch.__version__), "tracekit": version() or "0"},
    )


def _job() -> str:
    names = _JOB if "MASTER_PORT" in os.environ else _SLURM
    return "/".join(value for name in names if (value := os.environ.get(name, "")))
