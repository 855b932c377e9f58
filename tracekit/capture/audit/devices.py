"""On which device does a tensor pretend to be? As with real devices, this is a property of its storage.

Views, detached tensors, saved tensors and parameters whose `data` was replaced are therefore where their storage is,
and all tensors remain ordinary CPU tensors: autograd, optimizers and extensions see nothing unusual.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

CPU = torch.device("cpu")
GPU = torch.device("cuda", 0)
UNDECIDED = torch.device("meta")  # made inside an operator: takes the device of the tensors it meets
_FEWEST_TO_FORGET = 4096


def normalized(device: Any) -> torch.device:
    """The device with its index: `cuda` is the first GPU, and a number is a GPU."""
    torch_device = torch.device("cuda", device) if isinstance(device, int) else torch.device(device)
    return torch.device("cuda", 0) if torch_device.type == "cuda" and torch_device.index is None else torch_device


class Devices:
    """The storages that are not on the CPU, and those in pinned memory."""

    def __init__(self) -> None:
        # The weak reference prevents the storage's address, which is the key, from being reused.
        self._elsewhere: dict[int, tuple[StorageWeakRef, torch.device]] = {}
        self._pinned: dict[int, StorageWeakRef] = {}
        self._forget_at = _FEWEST_TO_FORGET
        self.used = False  # whether anything has been on a GPU

    def of(self, tensor: torch.Tensor) -> torch.device:
        """The device of the tensor; may be UNDECIDED."""
        for key, _ in _storages(tensor):
            if key in self._elsewhere:
                return self._elsewhere[key][1]
        return tensor_device(tensor) if is_meta(tensor) else CPU

    def keys(self, tensor: torch.Tensor) -> list[int]:
        """The keys of its storages: one, except for sparse tensors."""
        return [key for key, _ in _storages(tensor)]

    def put(self, tensor: torch.Tensor, device: torch.device) -> None:
        """Put the tensor, and with it everything that shares its storage, on that device."""
        self.used = self.used or device.type == "cuda"
        for key, storage in _storages(tensor):
            if device == CPU:
                self._elsewhere.pop(key, None)
            else:
                self._elsewhere[key] = (StorageWeakRef(storage), device)
        if len(self._elsewhere) > self._forget_at:
            self._forget_the_dead()

    def of_storage(self, storage: torch.UntypedStorage) -> torch.device:
        """The device of the storage."""
        return self._elsewhere[storage._cdata][1] if storage._cdata in self._elsewhere else CPU

    def put_storage(self, storage: torch.UntypedStorage, device: torch.device) -> None:
        """Put the storage on that device."""
        self.put(torch.empty(0, dtype=torch.uint8).set_(storage), device)

    def pin(self, tensor: torch.Tensor) -> None:
        """Mark the tensor as being in pinned memory."""
        for key, storage in _storages(tensor):
            self._pinned[key] = StorageWeakRef(storage)

    def is_pinned(self, tensor: torch.Tensor) -> bool:
        """Whether the tensor is in pinned memory."""
        return any(key in self._pinned and not self._pinned[key].expired() for key, _ in _storages(tensor))

    def allocated_bytes(self) -> int:
        """The size of everything that is on the GPU now."""
        self._forget_the_dead()
        alive = (reference for reference, device in self._elsewhere.values() if device != UNDECIDED)
        return sum(torch.UntypedStorage._new_with_weak_ptr(storage.cdata).nbytes() for storage in alive)

    def _forget_the_dead(self) -> None:
        self._elsewhere = {key: entry for key, entry in self._elsewhere.items() if not entry[0].expired()}
        self._pinned = {key: reference for key, reference in self._pinned.items() if not reference.expired()}
        self._forget_at = max(_FEWEST_TO_FORGET, 2 * len(self._elsewhere))


tensor_device = torch.Tensor.device.__get__  # the real attribute, whatever replaces it


def is_meta(tensor: torch.Tensor) -> bool:
    """Whether the tensor is on the meta device, without numbers, whatever device it pretends."""
    return bool(tensor_device(tensor).type == "meta")


def _storages(tensor: torch.Tensor) -> Iterator[tuple[int, Any]]:
    for part in _parts(tensor):
        try:
            storage = part.untyped_storage()
        except (NotImplementedError, RuntimeError):  # an opaque tensor such as oneDNN's, which can only be on the CPU
            continue
        yield storage._cdata, storage


def _parts(tensor: torch.Tensor) -> list[torch.Tensor]:
    """The ordinary tensors that hold its numbers."""
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
