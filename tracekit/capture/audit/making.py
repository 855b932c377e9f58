"""How tensors are made on a device: `torch.tensor(data, device=…)` and the like, and the types of `torch.cuda`."""

from collections.abc import Callable
from typing import Any

import torch

from tracekit.capture.audit.devices import CPU, GPU, normalized
from tracekit.capture.audit.moving import Moving, named_type
from tracekit.capture.audit.reading import Reading

_AS_TENSOR = torch.as_tensor
_NEW = torch.Tensor.new
CUDA_TYPES = [name for name in vars(torch.cuda) if name.endswith("Tensor")]  # FloatTensor and the like
_MANY = 1000  # a longer list is not searched for tensors


class Making:
    """Makes tensors on the CPU, and puts them on the requested device."""

    def __init__(self, moving: Moving, reading: Reading) -> None:
        self._moving, self._reading = moving, reading

    def new_tensor(self, tensor: torch.Tensor, data: Any, **options: Any) -> torch.Tensor:
        """Replaces `tensor.new_tensor`, which makes a tensor on the same device."""
        options.setdefault("dtype", tensor.dtype)
        options.setdefault("device", self._moving.device(tensor))
        result: torch.Tensor = torch.tensor(data, **options)
        return result

    def made_from(self, make: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
        """Replaces `torch.tensor(data, device=…)`."""

        def making(data: Any, *args: Any, device: Any = None, **options: Any) -> torch.Tensor:
            gpu_tensors = [tensor for tensor in _tensors_in(data) if self._moving.device(tensor).type == "cuda"]
            if not isinstance(data, torch.Tensor):
                for tensor in gpu_tensors:
                    self._reading.read(tensor, "aten::_local_scalar_dense")
            source = self._moving.device(data) if isinstance(data, torch.Tensor) else CPU
            target = normalized(device) if device is not None else source if gpu_tensors else self._default()
            pinned = options.pop("pin_memory", False)
            result = make(data, *args, device="cpu", **options)
            return self._moving.arrived(result, source, target, pinned)

        return making

    def as_tensor(self, data: Any, dtype: Any = None, device: Any = None) -> torch.Tensor:
        """Replaces `torch.as_tensor`, which returns a tensor unchanged if it fits."""
        if isinstance(data, torch.Tensor):
            return self._moving.to(data, self._moving.device(data) if device is None else device, dtype or data.dtype)
        return self.made_from(_AS_TENSOR)(data, dtype=dtype, device=device)

    def sparse(self, make: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
        """Replaces `torch.sparse_coo_tensor` and the like: the result is where its parts are, or is moved."""

        def making(*args: Any, device: Any = None, **options: Any) -> torch.Tensor:
            result = make(*args, **options)
            return result if device is None else self._moving.to(result, device)

        return making

    def new(self, tensor: torch.Tensor, *args: Any, **options: Any) -> torch.Tensor:
        """Replaces `tensor.new`, which is less specific than `new_empty` and `new_tensor`."""
        return self._moving.arrived(_NEW(tensor, *args, **options), _source_of(args), self._moving.device(tensor))

    def type_of(self, name: str) -> type:
        """Replaces `torch.cuda.FloatTensor`, which makes tensors on the GPU, and names their type."""
        return _TypeOnGpu(name, self._moving)

    def default_type(self, tensor_type: Any) -> None:
        """Replaces `torch.set_default_tensor_type`."""
        on_gpu, dtype = named_type(tensor_type)
        torch.set_default_device(GPU if on_gpu else None)
        torch.set_default_dtype(dtype)

    def _default(self) -> torch.device:
        return self._moving.device(torch.empty(0))


class _TypeOnGpu(type):
    """A class of tensors, by device and dtype."""

    def __new__(mcs, name: str, moving: Moving) -> "_TypeOnGpu":
        return super().__new__(mcs, name, (), {"__module__": "torch.cuda"})

    def __init__(cls, name: str, moving: Moving) -> None:
        cls._plain, cls._moving = getattr(torch, name), moving

    def __call__(cls, *args: Any) -> torch.Tensor:
        return cls._moving.arrived(cls._plain(*args), _source_of(args), GPU)

    def __instancecheck__(cls, instance: Any) -> bool:
        if not isinstance(instance, torch.Tensor):
            return False
        return bool(instance.dtype == cls._plain.dtype) and cls._moving.device(instance) == GPU


def _source_of(args: tuple[Any, ...]) -> torch.device:
    """The device of the tensors that the numbers come from; sizes do not matter."""
    return CPU if args and not isinstance(args[0], (int, torch.Size)) else GPU


def _tensors_in(data: Any) -> list[torch.Tensor]:
    """The tensors in lists, tuples and dictionaries."""
    if isinstance(data, torch.Tensor):
        return [data]
    if isinstance(data, dict):
        data = [*data.values()]
    if isinstance(data, (list, tuple)) and len(data) < _MANY:
        return [tensor for part in data for tensor in _tensors_in(part)]
    return []
