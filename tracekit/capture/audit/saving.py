"""Saving from a GPU and loading onto one, which torch does by the device that a file names for each storage."""

from typing import Any

import torch

from tracekit.capture.audit.devices import GPU, Devices
from tracekit.capture.child.replaced import Replacements

_BEFORE_THE_CPUS = 5  # lower than the CPU's priority, 10, which is the first among torch's own ways to save a storage


def replace(replacements: Replacements, devices: Devices) -> None:
    """Make torch.save and torch.load distinguish storages on a GPU from others, whatever `map_location` is."""
    serialization: Any = torch.serialization

    def tag(storage: Any) -> str | None:
        return str(GPU) if devices.of_storage(_untyped(storage)) == GPU else None

    def restore(storage: Any, location: str) -> Any:
        if not location.startswith("cuda"):
            return None
        devices.put_storage(_untyped(storage), GPU)
        return storage

    def cuda(storage: Any, *_: Any, **__: Any) -> Any:
        """Replaces `storage.cuda()`, which a `map_location` may call."""
        if devices.of_storage(_untyped(storage)) == GPU:
            return storage
        clone = storage.clone()
        devices.put_storage(_untyped(clone), GPU)
        return clone

    ways = [(_BEFORE_THE_CPUS, tag, restore), *serialization._package_registry]
    replacements.put_all(serialization, _package_registry=ways)
    replacements.put_all(torch.UntypedStorage, cuda=cuda)
    replacements.put_all(torch.storage.TypedStorage, cuda=cuda)


def _untyped(storage: Any) -> torch.UntypedStorage:
    return storage if isinstance(storage, torch.UntypedStorage) else storage._untyped_storage
