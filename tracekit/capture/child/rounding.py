"""The same operators with different rounding, as between two runs on a GPU, or between two kernels."""

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

# Operators that add up: on a GPU, atomics change the order from run to run; another kernel changes it anywhere.
_SUMS = {"sum", "mean", "mm", "addmm", "bmm", "baddbmm", "embedding_dense_backward", "index_select_backward"}
_SCATTERS = {"scatter_add", "scatter_reduce", "index_add", "index_put", "_index_put_impl"}
_HALF = (torch.bfloat16, torch.float16)


class RoundedDifferently(TorchDispatchMode):  # type: ignore[misc]
    """While active, every sum is off by a random amount of about half an ulp; in half precision, every result is.

    The reason for the latter is that a fused kernel rounds once, while separate kernels round every time. The
    training's own random numbers do not change.
    """

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._seed = seed
        self._generators: dict[torch.device, torch.Generator] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the operator, then move its results by half an ulp."""
        result = func(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor) and _rounds(func, result):
            drawn = torch.float64 if result.dtype == torch.float64 else torch.float32
            noise = torch.randn(
                result.shape, dtype=drawn, device=result.device, generator=self._generator(result.device)
            )
            result.mul_(1 + torch.finfo(result.dtype).eps / 2 * noise)
        return result

    def _generator(self, device: torch.device) -> torch.Generator:
        if device not in self._generators:
            self._generators[device] = torch.Generator(device).manual_seed(self._seed)
        return self._generators[device]


def _rounds(func: Any, result: torch.Tensor) -> bool:
    if not result.is_floating_point() or result.layout != torch.strided or result.device.type == "meta":
        return False
    if func.overloadpacket.__name__.removesuffix("_") in _SUMS | _SCATTERS:
        return True
    # A result that shares memory with an argument was rounded when the argument was made.
    return result.dtype in _HALF and all(output.alias_info is None for output in func._schema.returns)
