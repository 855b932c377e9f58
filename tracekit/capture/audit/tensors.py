"""Which attributes of torch's tensors are replaced while a GPU is emulated."""

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch.nn.parameter import is_lazy
from torch.overrides import handle_torch_function, has_torch_function_unary
from torch.utils._device import _device_constructors

from tracekit.capture.audit.devices import normalized
from tracekit.capture.audit.emulation import Emulation
from tracekit.capture.audit.making import CUDA_TYPES, Making
from tracekit.capture.audit.moving import Moving
from tracekit.capture.audit.reading import Reading
from tracekit.capture.child.replaced import Replacements

_SPARSE = ("sparse_coo_tensor", *(f"sparse_{kind}_tensor" for kind in ("csr", "csc", "bsr", "bsc", "compressed")))
_LIKE = ("empty_like", "zeros_like", "ones_like", "full_like", "rand_like", "randn_like", "randint_like")
_GROUP = torch._C._group_tensors_by_device_and_dtype


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
    replacements.put_all(torch.cuda, **{name: making.type_of(name) for name in CUDA_TYPES})
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
