"""The user's name of a module, `layers.0.lin`; the profiler only numbers the modules of each class: `Linear_3`."""

import gc
from collections.abc import Mapping
from typing import Any

_WRAPPER = "_orig_mod."  # what torch.compile puts around a module


def module_paths(addresses: Mapping[str, int]) -> dict[str, str]:
    """For each of the profiler's names, the path within the outermost module; an outermost module has none."""
    import torch

    modules = [candidate for candidate in gc.get_objects() if issubclass(type(candidate), torch.nn.Module)]
    child_ids = {id(child) for parent in modules for child in parent._modules.values() if child is not None}
    paths: dict[int, str] = {}
    for outermost in modules:
        if id(outermost) not in child_ids:
            for path, module in outermost.named_modules():
                paths.setdefault(id(module), f"{path}.".removeprefix(_WRAPPER).removesuffix("."))
    return {name: path for name, address in addresses.items() if (path := paths.get(address))}


def address_of(fields: Any) -> int | None:
    """The address of the module of a call in the profiler's event; None if it is not the call of a module."""
    pointer = getattr(getattr(fields, "module", None), "self_ptr", None)
    return pointer if isinstance(pointer, int) else None
