"""Which operators wait for a GPU, or have a result whose size depends on the data?

According to the CUDA kernels of torch 2.6 to 2.13, each of these copies something back to the host and waits for it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

READS = "reads a value back (.item(), float(), int(), if tensor:)"
_MASK = "counts the rows of a boolean mask"
_SIZED = "counts its result: its size depends on the data"
_CHECKS = "checks whether it succeeded"


@dataclass(frozen=True)
class Call:
    """One operator, as the dispatcher passes it on."""

    name: str  # without namespace and overload
    overload: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def argument(self, name: str, position: int) -> Any:
        """An argument, whether it was passed by position or by name."""
        return self.kwargs.get(name, self.args[position] if position < len(self.args) else None)


@dataclass(frozen=True)
class Wait:
    """Why an operator waits; `sized` if a compiler cannot know the size of its result, or a value."""

    why: str
    sized: bool = True
    unless: Callable[[Call], bool] = lambda call: False


def wait_of(call: Call) -> Wait | None:
    """Why this call would wait on a GPU; None if it would not."""
    wait = _WAITS.get(call.name)
    return wait if wait is not None and not wait.unless(call) else None


def masks_of(call: Call) -> list[torch.Tensor]:
    """The boolean masks among its indices."""
    indices = call.argument("indices", 1) or ()
    return [index for index in indices if isinstance(index, torch.Tensor) and index.dtype in (torch.bool, torch.uint8)]


def _fills(call: Call) -> bool:
    """Whether the call only fills by a mask, as in `x[mask] = 0`, which counts nothing."""
    values = call.argument("values", 2)
    if not masks_of(call):
        return True
    return isinstance(values, torch.Tensor) and values.dim() == 0 and values.device.type == "cpu"


_INDEX = Wait(_MASK, unless=lambda call: not masks_of(call))
_PUT = Wait(_MASK, unless=_fills)
_WAITS = {
    "_local_scalar_dense": Wait(READS),
    "nonzero": Wait(_SIZED),
    "index": _INDEX,
    "_unsafe_index": _INDEX,
    "index_put": _PUT,
    "index_put_": _PUT,
    "_index_put_impl_": _PUT,
    "_unsafe_index_put": _PUT,
    "masked_select": Wait(_MASK),
    "_unique": Wait(_SIZED),
    "_unique2": Wait(_SIZED),
    "unique_dim": Wait(_SIZED),
    "unique_consecutive": Wait(_SIZED),
    "unique_dim_consecutive": Wait(_SIZED),
    "bincount": Wait(_SIZED),
    "repeat_interleave": Wait(
        "adds up the repetitions: give it output_size=",
        unless=lambda call: call.overload != "Tensor" or call.kwargs.get("output_size") is not None,
    ),
    "equal": Wait("reads back whether all are equal"),
    "allclose": Wait("reads back whether all are close"),
    "normal": Wait(
        "checks the deviations", sized=False, unless=lambda call: call.overload not in ("Tensor_Tensor", "float_Tensor")
    ),
    "histc": Wait(
        "looks for the minimum and the maximum", sized=False, unless=lambda call: (call.argument("max", 3) or 0) != 0
    ),
    "embedding_renorm_": Wait("counts the rows that it renormalizes", sized=False),
    "_coalesce": Wait(_SIZED),
    "_to_sparse": Wait(_SIZED),
    "to_sparse": Wait(_SIZED),
    **{f"_to_sparse_{form}": Wait(_SIZED) for form in ("csr", "csc", "bsr", "bsc")},
    "segment_reduce": Wait("checks the lengths", sized=False, unless=lambda call: bool(call.kwargs.get("unsafe"))),
    "_linalg_check_errors": Wait(_CHECKS, sized=False),
    "linalg_eig": Wait("computes on the CPU"),
    "_linalg_svd": Wait(_CHECKS, sized=False),
}
# Operators that accept tensors on two devices; every operator accepts a zero-dimensional one on the CPU.
MIXES = {"copy_", "_to_copy", "_foreach_copy_", "set_", "lift_fresh", "_copy_from"}
# Packed sequences have their sizes on the CPU, wherever they are used.
MIXES |= {"_pack_padded_sequence", "_pack_padded_sequence_backward", "_pad_packed_sequence"}
MIXES |= {"lstm", "gru", "rnn_tanh", "rnn_relu"}
ON_THE_CPU = {"_pack_padded_sequence": (1,)}  # the results of an operator that are on the CPU
PUTS = {"index_put", "index_put_", "_index_put_impl_", "_unsafe_index_put"}
INDEXES = {"index", "_unsafe_index", *PUTS}
# What writes a number, which may be a tensor without dimensions: the argument's name and position.
NUMBERS = {"copy_": ("src", 1), "masked_fill": ("value", 2), "masked_fill_": ("value", 2)}
NUMBERS |= dict.fromkeys(PUTS, ("values", 2))
