"""What a tensor says of its device, and how it goes from one to another: `device`, `to`, `cuda`, `cpu`, `numpy` …"""

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._device import _device_constructors

from tracekit.capture.audit.devices import CPU, UNDECIDED, normalized
from tracekit.capture.audit.emulation import Emulation
from tracekit.capture.audit.operators import READS
from tracekit.capture.audit.replacing import Replacing

_TRUE = {name: getattr(torch.Tensor, name) for name in ("to", "type", "tolist", "numpy", "__deepcopy__", "new_tensor")}
_SPARSE = ("sparse_coo_tensor", *(f"sparse_{kind}_tensor" for kind in ("csr", "csc", "bsr", "bsc", "compressed")))
_LIKE = ("empty_like", "zeros_like", "ones_like", "full_like", "rand_like", "randn_like", "randint_like")
_NOT_NUMPY = "would crash: a tensor on the GPU is asked for its NumPy array"


def replace(replacing: Replacing, emulation: Emulation) -> None:
    """Let tensors pretend."""
    moving = Moving(emulation)
    devices = emulation.devices
    methods: dict[str, Callable[..., Any]] = {
        "to": moving.to,
        "cuda": moving.cuda,
        "cpu": moving.cpu,
        "type": moving.type,
        "tolist": moving.tolist,
        "numpy": moving.numpy,
        "new_tensor": moving.new_tensor,
        "pin_memory": moving.pin_memory,
        "is_pinned": lambda tensor, device=None: devices.is_pinned(tensor),
        "get_device": lambda tensor: -1 if moving.device(tensor).index is None else moving.device(tensor).index,
        "record_stream": lambda tensor, stream: None,
        "__deepcopy__": moving.deepcopy,
    }
    replacing.replace(torch.Tensor, **{name: _as_method(name, call) for name, call in methods.items()})
    replacing.replace(
        torch.Tensor,
        device=property(moving.device),
        is_cuda=property(lambda tensor: moving.device(tensor).type == "cuda"),
        is_cpu=property(lambda tensor: moving.device(tensor).type == "cpu"),
    )
    every = [make.__name__ for make in _device_constructors() if make is not None]
    makers = [name for name in every if hasattr(torch, name)]
    replacing.replace(torch, **{name: _numbered(getattr(torch, name)) for name in [*makers, *_LIKE]})
    replacing.replace(
        torch,
        tensor=moving.made_from(torch.tensor),
        as_tensor=moving.as_tensor,
        asarray=moving.made_from(torch.asarray),
        load=moving.load(torch.load),
        **{name: moving.sparse(getattr(torch, name)) for name in _SPARSE},
    )
    replacing.replace(torch._C._nn, _parse_to=_parsing(torch._C._nn._parse_to))
    replacing.replace(torch._C, _group_tensors_by_device_and_dtype=moving.grouped(_GROUP))
    replacing.replace(torch.nn.functional, one_hot=moving.one_hot(torch.nn.functional.one_hot))


def _as_method(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
    """A function, so that the tensor it is looked up on is its first argument."""

    @functools.wraps(getattr(torch.Tensor, name))
    def method(tensor: torch.Tensor, *args: Any, **options: Any) -> Any:
        return call(tensor, *args, **options)

    return method


class Moving:
    """From device to device, by way of the CPU's own operators."""

    def __init__(self, emulation: Emulation) -> None:
        self._emulation = emulation
        self._devices, self._watch = emulation.devices, emulation.watch

    def device(self, tensor: torch.Tensor) -> torch.device:
        """In place of `tensor.device`."""
        there = self._devices.of(tensor)
        return CPU if there == UNDECIDED and not _is_meta(tensor) else there

    def to(self, tensor: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        """In place of `tensor.to`, in each of its forms."""
        given = [arg for arg in args if not isinstance(arg, bool)]
        flags = dict(zip(("non_blocking", "copy"), [arg for arg in args if isinstance(arg, bool)], strict=False))
        options = {**flags, **kwargs}
        device, dtype = options.pop("device", None), options.pop("dtype", None)
        other = options.pop("other", None)
        for arg in [*given, *([other] if other is not None else [])]:
            if isinstance(arg, torch.dtype):
                dtype = arg
            elif isinstance(arg, torch.Tensor):
                device, dtype = self.device(arg), arg.dtype
            elif arg is not None:
                device = arg
        there = None if device is None else normalized(device)
        return self._moved(tensor, there, dtype or tensor.dtype, options)

    def _moved(
        self, tensor: torch.Tensor, there: torch.device | None, dtype: torch.dtype, options: dict[str, Any]
    ) -> torch.Tensor:
        if there is None or there == self.device(tensor):
            return _TRUE["to"](tensor, dtype=dtype, **options)
        if there.type not in ("cpu", "cuda") or _is_meta(tensor):
            return _TRUE["to"](tensor, device=there, dtype=dtype, **options)
        moved = _Move.apply(tensor, there, self._emulation, bool(options.pop("non_blocking", False)))
        options.pop("copy", None)
        return _TRUE["to"](moved, dtype=dtype, **options)

    def cuda(self, tensor: torch.Tensor, device: Any = None, non_blocking: bool = False, **options: Any) -> Any:
        """In place of `tensor.cuda`."""
        there = "cuda" if device is None else device
        return self.to(tensor, there, non_blocking=non_blocking, **options)

    def cpu(self, tensor: torch.Tensor, memory_format: Any = torch.preserve_format) -> torch.Tensor:
        """In place of `tensor.cpu`."""
        return self.to(tensor, "cpu", memory_format=memory_format)

    def type(self, tensor: torch.Tensor, dtype: Any = None, non_blocking: bool = False, **options: Any) -> Any:
        """In place of `tensor.type`: `torch.cuda.FloatTensor` on the GPU."""
        if dtype is not None:
            return _TRUE["type"](tensor, dtype, non_blocking, **options)
        named: str = _TRUE["type"](tensor)
        return named.replace("torch.", "torch.cuda.", 1) if self.device(tensor).type == "cuda" else named

    def tolist(self, tensor: torch.Tensor) -> Any:
        """In place of `tensor.tolist`."""
        self._read(tensor, "Tensor.tolist")
        return _TRUE["tolist"](tensor)

    def numpy(self, tensor: torch.Tensor, **options: Any) -> Any:
        """In place of `tensor.numpy`, which a GPU's tensor refuses."""
        if self.device(tensor).type == "cuda":
            self._watch.see_mixed("Tensor.numpy", _NOT_NUMPY, self._devices.keys(tensor))
        self._break("Tensor.numpy")
        return _TRUE["numpy"](tensor, **options)

    def new_tensor(self, tensor: torch.Tensor, data: Any, **options: Any) -> torch.Tensor:
        """In place of `tensor.new_tensor`: on the same device."""
        options.setdefault("dtype", tensor.dtype)
        options.setdefault("device", self.device(tensor))
        made: torch.Tensor = torch.tensor(data, **options)
        return made

    def pin_memory(self, tensor: torch.Tensor, device: Any = None) -> torch.Tensor:
        """In place of `tensor.pin_memory`."""
        if self._devices.is_pinned(tensor):
            return tensor
        pinned: torch.Tensor = tensor.clone()
        self._devices.pin(pinned)
        return pinned

    def deepcopy(self, tensor: torch.Tensor, memo: dict[int, Any]) -> torch.Tensor:
        """In place of `copy.deepcopy`, which copies the storage."""
        made: torch.Tensor = _TRUE["__deepcopy__"](tensor, memo)
        if self.device(made) != self.device(tensor):
            self._devices.put(made, self.device(tensor))
        return made

    def made_from(self, make: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
        """In place of `torch.tensor(data, device=…)`."""

        def making(data: Any, *args: Any, device: Any = None, **options: Any) -> torch.Tensor:
            theirs = [each for each in _inside(data) if self.device(each).type == "cuda"]
            if not isinstance(data, torch.Tensor):
                for each in theirs:
                    self._read(each, "aten::_local_scalar_dense")
            source = self.device(data) if isinstance(data, torch.Tensor) else CPU
            there = normalized(device) if device is not None else source if theirs else self._default()
            pinned = options.pop("pin_memory", False)
            made = make(data, *args, device="cpu", **options)
            return self._arrived(made, source, there, pinned)

        return making

    def as_tensor(self, data: Any, dtype: Any = None, device: Any = None) -> torch.Tensor:
        """In place of `torch.as_tensor`: a tensor that fits stays itself."""
        if isinstance(data, torch.Tensor):
            return self.to(data, self.device(data) if device is None else device, dtype or data.dtype)
        return self.made_from(_AS_TENSOR)(data, dtype=dtype, device=device)

    def sparse(self, make: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
        """In place of `torch.sparse_coo_tensor` and its like: it lies where its parts do, or is moved."""

        def making(*args: Any, device: Any = None, **options: Any) -> torch.Tensor:
            made = make(*args, **options)
            return made if device is None else self.to(made, device)

        return making

    def load(self, load: Callable[..., Any]) -> Callable[..., Any]:
        """In place of `torch.load`: what was saved from a GPU, or goes to one, is read on the CPU and moved."""

        def loading(file: Any, map_location: Any = None, *args: Any, **options: Any) -> Any:
            if callable(map_location) or isinstance(map_location, dict):
                return load(file, map_location, *args, **options)
            made = load(file, "cpu" if map_location is None else _on_cpu(map_location), *args, **options)
            if map_location is not None and normalized(map_location).type == "cuda":
                for tensor in _inside(made):
                    self._devices.put(tensor, normalized(map_location))
            return made

        return loading

    def grouped(self, group: Callable[..., dict[Any, Any]]) -> Callable[..., dict[Any, Any]]:
        """In place of what sorts parameters by device, for optimizers that go through all of them at once."""

        def grouping(lists: list[list[Any]], with_indices: bool = False) -> dict[Any, Any]:
            groups: dict[Any, tuple[list[list[Any]], list[int]]] = {}
            for (_, dtype), (columns, indices) in group(lists, with_indices).items():
                for at, first in enumerate(columns[0]):
                    parts, theirs = groups.setdefault((self.device(first), dtype), ([[] for _ in columns], []))
                    for part, column in zip(parts, columns, strict=True):
                        part.extend(column[at : at + 1])  # a list of other things may be empty
                    theirs.extend(indices[at : at + 1])
            return groups

        return grouping

    def one_hot(self, one_hot: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
        """In place of `one_hot`, which looks at every class on a CPU, and on a GPU only where it has to count them."""

        def encoding(tensor: torch.Tensor, num_classes: int = -1) -> torch.Tensor:
            if num_classes == -1:
                self._read(tensor, "aten::_local_scalar_dense")
            self._watch.silent += 1
            try:
                return one_hot(tensor, num_classes)
            finally:
                self._watch.silent -= 1

        return encoding

    def _arrived(
        self, made: torch.Tensor, source: torch.device, there: torch.device, pinned: bool = False
    ) -> torch.Tensor:
        if pinned:
            self._devices.pin(made)
        if there.type == "cuda":
            if source.type != "cuda":
                self._emulation.see_copy("aten::_to_copy", made, there, non_blocking=False)
            self._devices.put(made, there)
        return made

    def _default(self) -> torch.device:
        return self.device(torch.empty(0))

    def _read(self, tensor: torch.Tensor, operator: str) -> None:
        if self.device(tensor).type == "cuda":
            self._watch.see("sync", operator, READS)
        self._break(operator)

    def _break(self, operator: str) -> None:
        if self._emulation.regions.depth:
            self._watch.see("break", operator, "breaks the graph: a value that it reads back")


def _numbered(make: Callable[..., Any]) -> Callable[..., Any]:
    """In place of `torch.zeros(2, device=0)`: numbers are GPUs, and torch asks the driver which."""

    @functools.wraps(make)
    def making(*args: Any, **options: Any) -> Any:
        if isinstance(options.get("device"), int):
            options["device"] = normalized(options["device"])
        return make(*args, **options)

    return making


def _parsing(parse: Callable[..., Any]) -> Callable[..., Any]:
    """In place of what reads the arguments of `module.to(0)`."""

    def parsing(*args: Any, **options: Any) -> Any:
        if args and type(args[0]) is int:
            args = (normalized(args[0]), *args[1:])
        if type(options.get("device")) is int:
            options["device"] = normalized(options["device"])
        return parse(*args, **options)

    return parsing


class _Move(torch.autograd.Function):  # type: ignore[misc]
    """A copy on another device, and the gradient's way back."""

    @staticmethod
    def forward(context: Any, tensor: torch.Tensor, there: torch.device, emulation: Emulation, quick: bool) -> Any:
        """Copy."""
        context.back, context.emulation, context.quick = emulation.devices.of(tensor), emulation, quick
        return _copied(tensor, there, emulation, quick)

    @staticmethod
    def backward(context: Any, gradient: torch.Tensor) -> Any:
        """Copy back."""
        return _copied(gradient, context.back, context.emulation, context.quick), None, None, None


def _copied(tensor: torch.Tensor, there: torch.device, emulation: Emulation, non_blocking: bool) -> torch.Tensor:
    emulation.see_copy("aten::_to_copy", tensor, there, non_blocking)
    with torch._C._DisableTorchDispatch():
        made = tensor.detach().clone()
    emulation.devices.put(made, there)
    if there.type == "cpu" and non_blocking:
        emulation.devices.pin(made)  # torch puts such a copy in pinned memory
    return made


def _inside(data: Any) -> list[torch.Tensor]:
    """The tensors in lists, tuples and dictionaries."""
    if isinstance(data, torch.Tensor):
        return [data]
    if isinstance(data, dict):
        data = [*data.values()]
    if isinstance(data, (list, tuple)) and len(data) < 1000:
        return [tensor for each in data for tensor in _inside(each)]
    return []


def _on_cpu(location: Any) -> Any:
    return "cpu" if normalized(location).type == "cuda" else location


def _is_meta(tensor: torch.Tensor) -> bool:
    from tracekit.capture.audit.devices import tensor_device

    return bool(tensor_device(tensor).type == "meta")


_AS_TENSOR = torch.as_tensor
_GROUP = torch._C._group_tensors_by_device_and_dtype
