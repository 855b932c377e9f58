"""The device that trains: the only file that knows what PyTorch calls the GPUs that can be measured, and where their
functions are. (`audit` replaces those functions, to emulate a GPU.)

PyTorch calls the GPUs of both NVIDIA and AMD `cuda`. Other accelerators have modules with functions of the same names
(`torch.xpu`), but none of them has been measured here: they are refused by their names, or hidden from a script.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from types import ModuleType
from typing import Any

CPU, GPU = "cpu", "cuda"
_VISIBLE = "CUDA_VISIBLE_DEVICES"
_ALL_VISIBLE = (_VISIBLE, "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
_HIDES_ALL = ("", "-1", "NoDevFiles")

_hidden: list[str] = []  # kinds of accelerators


def is_gpu(device: str) -> bool:
    """Whether it is a GPU, of any number."""
    return device.startswith(GPU)


def gpu() -> ModuleType:
    """PyTorch's functions for GPUs: events, streams, memory, properties."""
    import torch

    module: ModuleType = torch.cuda
    return module


def has_gpu() -> bool:
    """Whether PyTorch can train on a GPU here."""
    return bool(gpu().is_available())


def preferred() -> str:
    """The device that trains where none is named."""
    return GPU if has_gpu() else CPU


def devices() -> list[str]:
    """The devices that PyTorch can train on here."""
    gpus = gpu().device_count() if has_gpu() else 0
    return [*([GPU] if gpus else []), *(f"{GPU}:{index}" for index in range(gpus)), CPU]


def properties() -> Iterator[Any]:
    """The properties of each GPU."""
    return (gpu().get_device_properties(index) for index in range(gpu().device_count() if has_gpu() else 0))


def uuid(gpu_properties: Any) -> str | None:
    """The uuid of a GPU, as nvidia-smi has it, which also sees GPUs that are hidden from torch; None if unknown."""
    number = getattr(gpu_properties, "uuid", None)
    return f"GPU-{number}" if number is not None else None


def activities(with_gpu: bool) -> list[Any]:
    """What the profiler is to record."""
    from torch.profiler import ProfilerActivity

    return [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if with_gpu else [])]


def synchronize(device: str) -> None:
    """Wait until the device has finished all its work."""
    if is_gpu(device):
        gpu().synchronize(device)


def records_a_graph() -> bool:
    """Whether what is launched now becomes part of a CUDA graph: nothing can be read meanwhile."""
    return has_gpu() and bool(gpu().is_current_stream_capturing())


def build() -> str:
    """What PyTorch was built for, in words."""
    import torch

    if torch.version.cuda:
        return f"CUDA {torch.version.cuda}"
    return f"ROCm {torch.version.hip}" if torch.version.hip else "CPU"


def why_no_gpu() -> str | None:
    """Why there is no GPU to measure, in words; None if there is one."""
    import torch

    if has_gpu():
        return None
    if accelerator := other_accelerator():
        return f"PyTorch finds {accelerator} here, which cannot be measured"
    if not (torch.version.cuda or torch.version.hip):
        return f"PyTorch {torch.__version__} is built without CUDA and ROCm"
    for name in _ALL_VISIBLE:
        if os.environ.get(name) in _HIDES_ALL:
            return f"{name}={os.environ[name]} hides every GPU"
    try:
        gpu().init()
    except (RuntimeError, AssertionError) as error:
        return (str(error).splitlines() or [type(error).__name__])[0]
    return "PyTorch finds no GPU"


def show_only(device: str) -> str:
    """Make this process see only that device, before torch looks for any. Returns the name that it then has."""
    if device == CPU:
        os.environ[_VISIBLE] = ""
        # One that cannot be measured, such as Apple's or Intel's: torch reports that there is none.
        if accelerator := other_accelerator():
            import torch

            _hidden.append(accelerator)
            for holder in (torch.accelerator, torch.backends.mps, torch.mps, torch.xpu):
                for name, answer in (("is_available", False), ("device_count", 0), ("current_accelerator", None)):
                    if hasattr(holder, name):
                        setattr(holder, name, lambda *_, answer=answer, **__: answer)
    kind, _, number = device.partition(":")
    if kind != GPU or not number:
        return device
    visible = [name.strip() for name in os.environ.get(_VISIBLE, "").split(",") if name.strip()]
    os.environ[_VISIBLE] = visible[int(number)] if int(number) < len(visible) else number
    return GPU


def accelerator() -> str | None:
    """The kind of accelerator PyTorch would train on here: cuda (AMD's GPUs, too), mps, xpu, …; None without one."""
    import torch

    if not torch.accelerator.is_available():
        return None
    return str(torch.accelerator.current_accelerator().type)


def other_accelerator() -> str | None:
    """The accelerator that PyTorch would train on here if it cannot be measured, else None."""
    kind = accelerator()
    return None if kind == GPU else kind


def used_though_hidden() -> str | None:
    """A hidden accelerator that has tensors on it nevertheless, because the script never asked whether there is one."""
    return next(filter(holds_tensors, _hidden), None)


def holds_tensors(kind: str) -> bool:
    """Whether any tensor of this process is on that kind of accelerator; True if that is unknown."""
    import torch

    module = getattr(torch, kind, None)
    allocated = getattr(module, "memory_allocated", None) or getattr(module, "current_allocated_memory", None)
    return allocated is None or allocated() > 0


def free_bytes() -> int | None:
    """The free memory of the current GPU; None if it cannot be asked."""
    with suppress(RuntimeError, AssertionError):
        return int(gpu().mem_get_info()[0])
    return None
