"""What the user calls a module: `layers.0.lin`, where the profiler only counts those of its class, `Linear_3`."""

import gc
from collections.abc import Mapping
from typing import Any

_WRAPPER = "_orig_mod."  # what torch.compile puts around a module


def module_paths(addresses: Mapping[str, int]) -> dict[str, str]:
    """For each name of the profiler's the path within the outermost module that holds it; an outermost has none."""
    import torch

    modules = [each for each in gc.get_objects() if issubclass(type(each), torch.nn.Module)]
    held = {id(child) for each in modules for child in each._modules.values() if child is not None}
    paths: dict[int, str] = {}
    for outermost in modules:
        if id(outermost) not in held:
            for path, module in outermost.named_modules():
                paths.setdefault(id(module), f"{path}.".removeprefix(_WRAPPER).removesuffix("."))
    return {name: path for name, address in addresses.items() if (path := paths.get(address))}


def address_of(fields: Any) -> int | None:
    """The path of the module of a call, as in the profiler's event; None where it is not a module's."""
    pointer = getattr(getattr(fields, "module", None), "self_ptr", None)
    return pointer if isinstance(pointer, int) else None
