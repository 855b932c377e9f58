"""Which attributes of torch's tensors are replaced while a GPU is emulated.

They make tensors on a device: `torch.tensor(data, device=…)` and the like, and the types of `torch.cuda`. They move one
from device to device: `to`, `cuda`, `cpu`, pinned memory, and the path of its gradient. And they bring its values to
the host: `tolist`, `numpy`, and functions that look at all values first.
"""

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch.nn.parameter import is_lazy
from torch.overrides import handle_torch_function, has_torch_function_unary
from torch.utils._device import _device_constructors

from tracekit.capture.audit.emulation import CPU, GPU, READS, UNDECIDED, Emulation, is_meta, normalized
from tracekit.capture.child.replaced import Replacements

_SPARSE = ("sparse_coo_tensor", *(f"sparse_{kind}_tensor" for kind in ("csr", "csc", "bsr", "bsc", "compressed")))
_LIKE = ("empty_like", "zeros_like", "ones_like", "full_like", "rand_like", "randn_like", "randint_like")
_GROUP = torch._C._group_tensors_by_device_and_dtype
_AS_TENSOR = torch.as_tensor
_NEW = torch.Tensor.new
CUDA_TYPES = [name for name in vars(torch.cuda) if name.endswith("Tensor")]  # FloatTensor and the like
_MAX_SEARCHED_ITEMS = 1000  # a longer list is not searched for tensors
_TRUE_MOVES = {name: getattr(torch.Tensor, name) for name in ("to", "type", "__deepcopy__")}
_TRUE_READS = {name: getattr(torch.Tensor, name) for name in ("tolist", "numpy")}
_NOT_NUMPY = "would crash: a tensor on the GPU has no NumPy array"


def replace(replacements: Replacements, emulation: Emulation) -> None:
    """Make tensors pretend to be on a GPU."""
    moving, reading = Moving(emulation), Reading(emulation)
    making, devices = Making(moving, reading), emulation.devices
    methods: dict[str, Callable[..., Any]] = {
        "to": moving.to,
        "cuda": moving.cuda,
        "cpu": moving.cpu,
        "type": moving.type,
        "type_as": moving.to,
        "tolist": reading.tolist,
        "numpy": reading.numpy,
        "new": making.new,
        "new_tensor": making.new_tensor,
        "pin_memory": moving.pin_memory,
        "is_pinned": lambda tensor, device=None: devices.is_pinned(tensor),
        "get_device": lambda tensor: -1 if moving.device(tensor).index is None else moving.device(tensor).index,
        "record_stream": lambda tensor, stream: None,
        "__deepcopy__": moving.deepcopy,
    }
    replacements.put_all(torch.Tensor, **{name: _as_method(name, call) for name, call in methods.items()})
    replacements.put_all(
        torch.Tensor,
        device=property(moving.device),
        is_cuda=property(lambda tensor: moving.device(tensor).type == "cuda"),
        is_cpu=property(lambda tensor: moving.device(tensor).type == "cpu"),
    )
    constructor_names = [make.__name__ for make in _device_constructors() if make is not None]
    makers = [name for name in constructor_names if hasattr(torch, name)]
    replacements.put_all(torch, **{name: _numbered(getattr(torch, name)) for name in [*makers, *_LIKE]})
    replacements.put_all(
        torch,
        tensor=making.made_from(torch.tensor),
        as_tensor=making.as_tensor,
        asarray=making.made_from(torch.asarray),
        set_default_tensor_type=making.default_type,
        **{name: making.sparse(getattr(torch, name)) for name in _SPARSE},
    )
    replacements.put_all(torch.cuda, **{name: _TypeOnGpu(name, moving) for name in CUDA_TYPES})
    replacements.put_all(torch._C._nn, _parse_to=_parsing(torch._C._nn._parse_to))
    replacements.put_all(torch._C, _group_tensors_by_device_and_dtype=_grouped(moving, _GROUP))
    replacements.put_all(torch.nn.functional, one_hot=reading.one_hot(torch.nn.functional.one_hot))


def _as_method(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
    """A method that gets its tensor as the first argument, and that torch treats as one of its own functions."""

    @functools.wraps(getattr(torch.Tensor, name))
    def method(tensor: torch.Tensor, *args: Any, **options: Any) -> Any:
        if is_lazy(tensor):  # a lazy tensor refuses every function that it does not know
            with torch._C.DisableTorchFunctionSubclass():
                return call(tensor, *args, **options)
        if has_torch_function_unary(tensor):
            return handle_torch_function(method, (tensor,), tensor, *args, **options)
        return call(tensor, *args, **options)

    return method


def _numbered(make: Callable[..., Any]) -> Callable[..., Any]:
    """Replaces factories such as `torch.zeros(2, device=0)`, for which torch would ask the driver about GPU 0."""

    @functools.wraps(make)
    def making(*args: Any, **options: Any) -> Any:
        if isinstance(options.get("device"), int):
            options["device"] = normalized(options["device"])
        return make(*args, **options)

    return making


def _parsing(parse: Callable[..., Any]) -> Callable[..., Any]:
    """Replaces the function that parses the arguments of `module.to(0)`."""

    def parsing(*args: Any, **options: Any) -> Any:
        if args and type(args[0]) is int:
            args = (normalized(args[0]), *args[1:])
        if type(options.get("device")) is int:
            options["device"] = normalized(options["device"])
        return parse(*args, **options)

    return parsing


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
        target, dtype = None if device is None else normalized(device), dtype or tensor.dtype
        if target is None or target == self.device(tensor):
            return _TRUE_MOVES["to"](tensor, dtype=dtype, **options)
        if target.type not in ("cpu", "cuda") or is_meta(tensor):
            return _TRUE_MOVES["to"](tensor, device=target, dtype=dtype, **options)
        moved = _Move.apply(tensor, target, self._emulation, bool(options.pop("non_blocking", False)))
        options.pop("copy", None)
        return _TRUE_MOVES["to"](moved, dtype=dtype, **options)

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
            return _TRUE_MOVES["type"](tensor, dtype, non_blocking, **options)
        if dtype is not None:
            on_gpu, requested_dtype = named_type(dtype)
            return self.to(tensor, GPU if on_gpu else CPU, requested_dtype, non_blocking=non_blocking)
        type_name: str = _TRUE_MOVES["type"](tensor)
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
        clone: torch.Tensor = _TRUE_MOVES["__deepcopy__"](tensor, memo)
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


def _grouped(moving: Moving, group: Callable[..., dict[Any, Any]]) -> Callable[..., dict[Any, Any]]:
    """Replaces the function that groups parameters by device, for optimizers that update all of them at once."""

    def grouping(lists: list[list[Any]], with_indices: bool = False) -> dict[Any, Any]:
        groups: dict[Any, tuple[list[list[Any]], list[int]]] = {}
        for (_, dtype), (columns, indices) in group(lists, with_indices).items():
            for position, first in enumerate(columns[0]):
                parts, group_indices = groups.setdefault((moving.device(first), dtype), ([[] for _ in columns], []))
                for part, column in zip(parts, columns, strict=True):
                    part.extend(column[position : position + 1])  # a list of other things may be empty
                group_indices.extend(indices[position : position + 1])
        return groups

    return grouping


class Reading:
    """Reads values from a device into Python."""

    def __init__(self, emulation: Emulation) -> None:
        self._emulation = emulation
        self._devices, self._watch = emulation.devices, emulation.watch

    def tolist(self, tensor: torch.Tensor) -> Any:
        """Replaces `tensor.tolist`."""
        self.read(tensor, "Tensor.tolist")
        return _TRUE_READS["tolist"](tensor)

    def numpy(self, tensor: torch.Tensor, **options: Any) -> Any:
        """Replaces `tensor.numpy`, which fails for a tensor on the GPU."""
        if self._devices.of(tensor).type == "cuda":
            self._watch.see_mixed("Tensor.numpy", _NOT_NUMPY, self._devices.keys(tensor))
        self._break("Tensor.numpy")
        return _TRUE_READS["numpy"](tensor, **options)

    def one_hot(self, one_hot: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
        """Replaces `one_hot`, which looks at every class on a CPU, but on a GPU only if it has to count them."""

        def encoding(tensor: torch.Tensor, num_classes: int = -1) -> torch.Tensor:
            if num_classes == -1:
                self.read(tensor, "aten::_local_scalar_dense")
            with self._watch.silenced():
                return one_hot(tensor, num_classes)

        return encoding

    def read(self, tensor: torch.Tensor, operator: str) -> None:
        """Record that the host waits for these values, and that a graph breaks at them."""
        if self._devices.of(tensor).type == "cuda":
            self._watch.see("sync", operator, READS)
        self._break(operator)

    def _break(self, operator: str) -> None:
        """Record that the host waits for these values, and that a graph breaks at them."""
        if self._emulation.regions.depth:
            self._watch.see("break", operator, "breaks the graph: a value that it reads back")


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
            target = (
                normalized(device)
                if device is not None
                else source
                if gpu_tensors
                else self._moving.device(torch.empty(0))
            )
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

    def default_type(self, tensor_type: Any) -> None:
        """Replaces `torch.set_default_tensor_type`."""
        on_gpu, dtype = named_type(tensor_type)
        torch.set_default_device(GPU if on_gpu else None)
        torch.set_default_dtype(dtype)


class _TypeOnGpu(type):
    """Replaces `torch.cuda.FloatTensor`, which makes tensors on the GPU, and names their type: device and dtype."""

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
    if isinstance(data, (list, tuple)) and len(data) < _MAX_SEARCHED_ITEMS:
        return [tensor for part in data for tensor in _tensors_in(part)]
    return []


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
