"""How a tensor moves from one device to another: `to`, `cuda`, `cpu`, pinned memory, and the path of its gradient."""

from typing import Any

import torch

from tracekit.capture.audit.devices import CPU, GPU, UNDECIDED, is_meta, normalized
from tracekit.capture.audit.emulation import Emulation

_TRUE = {name: getattr(torch.Tensor, name) for name in ("to", "type", "__deepcopy__")}


class Moving:
    """Moves tensors from device to device with the CPU's own operators."""

    def __init__(self, emulation: Emulation) -> None:
        self._emulation, self._devices = emulation, emulation.devices

    def device(self, tensor: torch.Tensor) -> torch.device:
        """Replaces `tensor.device`."""
        device = self._devices.of(tensor)
        return CPU if device == UNDECIDED and not is_meta(tensor) else device

    def to(self, tensor: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        """Replaces `tensor.to`, in all of its forms."""
        positional = [arg for arg in args if not isinstance(arg, bool)]
        flags = dict(zip(("non_blocking", "copy"), [arg for arg in args if isinstance(arg, bool)], strict=False))
        options = {**flags, **kwargs}
        device, dtype = options.pop("device", None), options.pop("dtype", None)
        example = options.pop("other", None)
        for arg in [*positional, *([example] if example is not None else [])]:
            if isinstance(arg, torch.dtype):
                dtype = arg
            elif isinstance(arg, torch.Tensor):
                device, dtype = self.device(arg), arg.dtype
            elif arg is not None:
                device = arg
        target = None if device is None else normalized(device)
        return self._moved(tensor, target, dtype or tensor.dtype, options)

    def _moved(
        self, tensor: torch.Tensor, target: torch.device | None, dtype: torch.dtype, options: dict[str, Any]
    ) -> torch.Tensor:
        if target is None or target == self.device(tensor):
            return _TRUE["to"](tensor, dtype=dtype, **options)
        if target.type not in ("cpu", "cuda") or is_meta(tensor):
            return _TRUE["to"](tensor, device=target, dtype=dtype, **options)
        moved = _Move.apply(tensor, target, self._emulation, bool(options.pop("non_blocking", False)))
        options.pop("copy", None)
        return _TRUE["to"](moved, dtype=dtype, **options)

    def cuda(self, tensor: torch.Tensor, device: Any = None, non_blocking: bool = False, **options: Any) -> Any:
        """Replaces `tensor.cuda`."""
        target = "cuda" if device is None else device
        return self.to(tensor, target, non_blocking=non_blocking, **options)

    def cpu(self, tensor: torch.Tensor, memory_format: Any = torch.preserve_format) -> torch.Tensor:
        """Replaces `tensor.cpu`."""
        return self.to(tensor, "cpu", memory_format=memory_format)

    def type(self, tensor: torch.Tensor, dtype: Any = None, non_blocking: bool = False, **options: Any) -> Any:
        """Replaces `tensor.type`, which names or changes the type; `torch.cuda.FloatTensor` is a type on the GPU."""
        if isinstance(dtype, torch.dtype):
            return _TRUE["type"](tensor, dtype, non_blocking, **options)
        if dtype is not None:
            on_gpu, requested_dtype = named_type(dtype)
            return self.to(tensor, GPU if on_gpu else CPU, requested_dtype, non_blocking=non_blocking)
        type_name: str = _TRUE["type"](tensor)
        return type_name.replace("torch.", "torch.cuda.", 1) if self.device(tensor).type == "cuda" else type_name

    def pin_memory(self, tensor: torch.Tensor, device: Any = None) -> torch.Tensor:
        """Replaces `tensor.pin_memory`."""
        if self._devices.is_pinned(tensor):
            return tensor
        pinned: torch.Tensor = tensor.clone()
        self._devices.pin(pinned)
        return pinned

    def deepcopy(self, tensor: torch.Tensor, memo: dict[int, Any]) -> torch.Tensor:
        """Replaces `copy.deepcopy`, which copies the storage."""
        clone: torch.Tensor = _TRUE["__deepcopy__"](tensor, memo)
        if self.device(clone) != self.device(tensor):
            self._devices.put(clone, self.device(tensor))
        return clone

    def arrived(
        self, tensor: torch.Tensor, source: torch.device, target: torch.device, pinned: bool = False
    ) -> torch.Tensor:
        """Put what was just made from a tensor on its new device, and record the copy."""
        if pinned:
            self._devices.pin(tensor)
        if target.type == "cuda":
            if source.type != "cuda":
                self._emulation.see_copy("aten::_to_copy", tensor, target, non_blocking=False)
            self._devices.put(tensor, target)
        return tensor


def named_type(tensor_type: Any) -> tuple[bool, torch.dtype]:
    """Whether `"torch.cuda.FloatTensor"`, or the class of that name, is a type on the GPU, and its dtype."""
    name = tensor_type if isinstance(tensor_type, str) else f"{tensor_type.__module__}.{tensor_type.__name__}"
    return ".cuda." in name, getattr(torch, name.rpartition(".")[2]).dtype


class _Move(torch.autograd.Function):  # type: ignore[misc]
    """A copy to another device, and back for the gradient."""

    @staticmethod
    def forward(context: Any, tensor: torch.Tensor, target: torch.device, emulation: Emulation, quick: bool) -> Any:
        """Copy."""
        context.back, context.emulation, context.quick = emulation.devices.of(tensor), emulation, quick
        return _copied(tensor, target, emulation, quick)

    @staticmethod
    def backward(context: Any, gradient: torch.Tensor) -> Any:
        """Copy back."""
        return _copied(gradient, context.back, context.emulation, context.quick), None, None, None


def _copied(tensor: torch.Tensor, target: torch.device, emulation: Emulation, non_blocking: bool) -> torch.Tensor:
    emulation.see_copy("aten::_to_copy", tensor, target, non_blocking)
    with torch._C._DisableTorchDispatch():
        clone = tensor.detach().clone()
    emulation.devices.put(clone, target)
    if target.type == "cpu" and non_blocking:
        emulation.devices.pin(clone)  # torch puts such a copy in pinned memory
    return clone
