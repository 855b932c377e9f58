"""Scripts that ask for several GPUs or processes: in an audit, there is one of each."""

from collections.abc import Callable
from typing import Any

import torch
from torch.nn.parallel import scatter_gather

from tracekit.capture.audit.devices import normalized
from tracekit.capture.child.replaced import Replacements


def replace(replacements: Replacements) -> None:
    """Give DataParallel one GPU, and torch.distributed a backend for it."""
    replacements.put_all(scatter_gather, Scatter=_Scatter)
    if torch.distributed.is_available():
        distributed: Any = torch.distributed
        begin = _by_way_of_the_cpu(distributed.init_process_group)
        replacements.put_all(distributed, init_process_group=begin, is_nccl_available=lambda: True)


class _Scatter:
    """Replaces the function that gives each GPU its part of a batch: the only GPU gets all of it."""

    @staticmethod
    def apply(devices: list[Any], sizes: Any, dim: int, tensor: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """As an autograd function is called."""
        return (tensor.to(normalized(devices[0]), non_blocking=True),)


def _by_way_of_the_cpu(begin: Callable[..., None]) -> Callable[..., None]:
    """Replaces `init_process_group("nccl")`, which CPU builds lack."""

    def beginning(backend: str | None = None, *args: Any, device_id: Any = None, **options: Any) -> None:
        begin(None if backend is None else "gloo" if "nccl" in backend else backend, *args, **options)

    return beginning
