"""On which device does a tensor pretend to lie? As on a GPU, that is a property of its storage.

So views, detached tensors, saved ones and parameters whose `data` was replaced lie where their storage does, and
tensors stay plain ones of the CPU: autograd, optimizers and extensions see nothing unusual.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

CPU = torch.device("cpu")
GPU = torch.device("cuda", 0)
UNDECIDED = torch.device("meta")  # made inside an operator, with no word of where: it goes with what it meets
_FEWEST_TO_FORGET = 4096


def normalized(device: Any) -> torch.device:
    """`cuda` is the first GPU; numbers are GPUs."""
    given = torch.device("cuda", device) if isinstance(device, int) else torch.device(device)
    return torch.device("cuda", 0) if given.type == "cuda" and given.index is None else given


class Devices:
    """The storages that lie elsewhere than on the CPU, and those that are pinned."""

    def __init__(self) -> None:
        # The weak reference keeps the storage's address, the key, from being given to another one.
        self._elsewhere: dict[int, tuple[StorageWeakRef, torch.device]] = {}
        self._pinned: dict[int, StorageWeakRef] = {}
        self._forget_at = _FEWEST_TO_FORGET
        self.used = False  # something has lain on a GPU

    def of(self, tensor: torch.Tensor) -> torch.device:
        """Where it lies; UNDECIDED is possible."""
        for key, _ in _storages(tensor):
            if key in self._elsewhere:
                return self._elsewhere[key][1]
        return tensor_device(tensor) if is_meta(tensor) else CPU

    def keys(self, tensor: torch.Tensor) -> list[int]:
        """Of its storages: one, but for sparse tensors."""
        return [key for key, _ in _storages(tensor)]

    def put(self, tensor: torch.Tensor, device: torch.device) -> None:
        """From now on it lies there, and so does everything that shares its storage."""
        self.used = self.used or device.type == "cuda"
        for key, storage in _storages(tensor):
            if device == CPU:
                self._elsewhere.pop(key, None)
            else:
                self._elsewhere[key] = (StorageWeakRef(storage), device)
        if len(self._elsewhere) > self._forget_at:
            self._forget_the_dead()

    def of_storage(self, storage: torch.UntypedStorage) -> torch.device:
        """Where it lies."""
        return self._elsewhere[storage._cdata][1] if storage._cdata in self._elsewhere else CPU

    def put_storage(self, storage: torch.UntypedStorage, device: torch.device) -> None:
        """From now on it lies there."""
        self.put(torch.empty(0, dtype=torch.uint8).set_(storage), device)

    def pin(self, tensor: torch.Tensor) -> None:
        """It lies in pinned memory."""
        for key, storage in _storages(tensor):
            self._pinned[key] = StorageWeakRef(storage)

    def is_pinned(self, tensor: torch.Tensor) -> bool:
        """Does it lie in pinned memory?"""
        return any(key in self._pinned and not self._pinned[key].expired() for key, _ in _storages(tensor))

    def allocated_bytes(self) -> int:
        """Of all that lies on the GPU now."""
        self._forget_the_dead()
        alive = (reference for reference, device in self._elsewhere.values() if device != UNDECIDED)
        return sum(torch.UntypedStorage._new_with_weak_ptr(each.cdata).nbytes() for each in alive)

    def _forget_the_dead(self) -> None:
        self._elsewhere = {key: entry for key, entry in self._elsewhere.items() if not entry[0].expired()}
        self._pinned = {key: each for key, each in self._pinned.items() if not each.expired()}
        self._forget_at = max(_FEWEST_TO_FORGET, 2 * len(self._elsewhere))


tensor_device = torch.Tensor.device.__get__  # the true one, whatever replaces the attribute


def is_meta(tensor: torch.Tensor) -> bool:
    """A tensor without numbers, whatever it pretends."""
    return bool(tensor_device(tensor).type == "meta")


def _storages(tensor: torch.Tensor) -> Iterator[tuple[int, Any]]:
    for part in _parts(tensor):
        try:
            storage = part.untyped_storage()
        except (NotImplementedError, RuntimeError):  # opaque, as oneDNN's: it can lie nowhere else
            continue
        yield storage._cdata, storage


def _parts(tensor: torch.Tensor) -> list[torch.Tensor]:
    """The plain tensors that hold its numbers."""
    while torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        tensor = torch._C._functorch.get_unwrapped(tensor)
    if tensor.layout == torch.strided:
        return [tensor]
    with torch._C._DisableTorchDispatch(), torch.no_grad():
        if tensor.layout == torch.sparse_coo:
            return [tensor._indices(), tensor._values()]
        if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
            return [tensor.crow_indices(), tensor.col_indices(), tensor.values()]
        if tensor.layout in (torch.sparse_csc, torch.sparse_bsc):
            return [tensor.ccol_indices(), tensor.row_indices(), tensor.values()]
    return []
