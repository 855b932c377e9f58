"""The emulated GPU: every operator runs on the CPU, but its results count as being on the GPU.

On which device a tensor pretends to be is a property of its storage, as with real devices. Views, detached tensors,
saved tensors and parameters whose `data` was replaced are therefore where their storage is, and all tensors remain
ordinary CPU tensors: autograd, optimizers and extensions see nothing unusual.

Which operators wait for a GPU, or have a result whose size depends on the data, is taken from the CUDA kernels of torch
2.6 to 2.13: each of these copies something back to the host and waits for it.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from msgspec import Struct
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

from tracekit.capture.audit.watch import Regions, Watch, running

CPU = torch.device("cpu")
GPU = torch.device("cuda", 0)
UNDECIDED = torch.device("meta")  # made inside an operator: takes the device of the tensors it meets
_FEWEST_TO_FORGET = 4096
# A smaller copy from pageable memory is staged at once (CUDA's "API synchronization behavior"); of a larger one, the
# driver stages piece by piece, whatever `non_blocking` says.
_STAGED_BYTES = 64 * 1024
tensor_device = torch.Tensor.device.__get__  # the real attribute, whatever replaces it
_KNOWN_NAMESPACES = ("aten", "prim", "prims", "profiler", "quantized", "mkldnn", "mkl", "onednn")
READS = "reads a value back (.item(), float(), int(), if tensor:)"
_MASK = "counts the rows of a boolean mask"
# Operators that have a result whose size depends on the data.
_SIZED_BY_DATA = (
    *("nonzero", "_unique", "_unique2", "unique_dim", "unique_consecutive", "unique_dim_consecutive", "bincount"),
    *("_coalesce", "to_sparse", "_to_sparse", *(f"_to_sparse_{form}" for form in ("csr", "csc", "bsr", "bsc"))),
)
_CHECKS = "checks whether it succeeded"
# Operators that accept tensors on two devices; every operator accepts a zero-dimensional one on the CPU.
MIXES = {
    *("copy_", "_to_copy", "_foreach_copy_", "set_", "lift_fresh", "_copy_from"),
    # Packed sequences have their sizes on the CPU, wherever they are used.
    *("_pack_padded_sequence", "_pack_padded_sequence_backward", "_pad_packed_sequence"),
    *("lstm", "gru", "rnn_tanh", "rnn_relu"),
}
ON_THE_CPU = {"_pack_padded_sequence": (1,)}  # the results of an operator that are on the CPU
PUTS = {"index_put", "index_put_", "_index_put_impl_", "_unsafe_index_put"}
INDEXES = {"index", "_unsafe_index", *PUTS}
# What writes a number, which may be a tensor without dimensions: the argument's name and position.
NUMBERS = {
    "copy_": ("src", 1),
    "masked_fill": ("value", 2),
    "masked_fill_": ("value", 2),
    **dict.fromkeys(PUTS, ("values", 2)),
}


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


def is_meta(tensor: torch.Tensor) -> bool:
    """Whether the tensor is on the meta device, without numbers, whatever device it pretends."""
    return bool(tensor_device(tensor).type == "meta")


def _storages(tensor: torch.Tensor) -> Iterator[tuple[int, Any]]:
    """The storages of the ordinary tensors that hold its numbers, with their keys."""
    while torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        tensor = torch._C._functorch.get_unwrapped(tensor)
    parts = [tensor] if tensor.layout == torch.strided else []
    if not parts:
        with torch._C._DisableTorchDispatch(), torch.no_grad():
            if tensor.layout == torch.sparse_coo:
                parts = [tensor._indices(), tensor._values()]
            elif tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
                parts = [tensor.crow_indices(), tensor.col_indices(), tensor.values()]
            elif tensor.layout in (torch.sparse_csc, torch.sparse_bsc):
                parts = [tensor.ccol_indices(), tensor.row_indices(), tensor.values()]
    for part in parts:
        try:
            storage = part.untyped_storage()
        except (NotImplementedError, RuntimeError):  # an opaque tensor such as oneDNN's, which can only be on the CPU
            continue
        yield storage._cdata, storage


class Call(Struct, frozen=True):
    """One operator, as the dispatcher passes it on."""

    name: str  # without namespace and overload
    overload: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def argument(self, name: str, position: int) -> Any:
        """An argument, whether it was passed by position or by name."""
        return self.kwargs.get(name, self.args[position] if position < len(self.args) else None)


class Wait(Struct, frozen=True):
    """Why an operator waits; `sized` if a compiler cannot know the size of its result, or a value."""

    why: str
    sized: bool = True
    unless: Callable[[Call], bool] = lambda call: False


class Emulation(TorchDispatchMode):  # type: ignore[misc]
    """While entered, sees every operator of this thread, forward and backward."""

    def __init__(self, devices: Devices, watch: Watch, regions: Regions) -> None:
        super().__init__()
        self.devices, self.watch, self.regions = devices, watch, regions
        self.foreign: set[str] = set()  # operators of which it is unknown whether they wait

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Examine the operator, run it on the CPU, and assign its results to a device."""
        if any(subclass.__torch_dispatch__ is not torch._C._disabled_torch_dispatch_impl for subclass in types):
            return NotImplemented  # a subclass with its own dispatch unwraps itself first
        kwargs = kwargs or {}
        packet = function.overloadpacket
        call = Call(packet.__name__, function._overloadname, args, kwargs)
        inputs = [*_tensors((*args, *kwargs.values()))]
        device = self._device(kwargs, inputs)
        self._look(call, inputs, device)
        if not str(packet).startswith(_KNOWN_NAMESPACES) and device.type == "cuda":
            self.foreign.add(str(packet).replace(".", "::"))
        input_keys = {key for tensor in inputs for key in self.devices.keys(tensor)}
        cpu_options = dict(kwargs)
        pinned = bool(kwargs.get("pin_memory"))
        if pinned:
            cpu_options["pin_memory"] = False
        if kwargs.get("device") is not None and torch.device(kwargs["device"]).type == "cuda":
            cpu_options["device"] = CPU
        result = function(*args, **cpu_options)
        for position in ON_THE_CPU.get(call.name, ()):
            input_keys |= {*self.devices.keys(result[position])}
        for tensor in _tensors((result,)):
            current = self.devices.of(tensor)
            is_new = current == CPU and input_keys.isdisjoint(self.devices.keys(tensor))
            if device != CPU and (is_new or current == UNDECIDED):
                self.devices.put(tensor, device)
            if pinned:
                self.devices.pin(tensor)
        return result

    def _device(self, kwargs: dict[str, Any], inputs: list[torch.Tensor]) -> torch.device:
        """The device of the operator's result."""
        requested = kwargs.get("device")
        if requested is not None and (torch.device(requested).type != "cpu" or "pin_memory" in kwargs):
            return normalized(requested)  # given in Python; inside an operator, `cpu` means the device of its inputs
        input_devices = {self.devices.of(tensor) for tensor in inputs}
        gpus = [device for device in input_devices if device.type == "cuda"]
        return gpus[0] if gpus else UNDECIDED if input_devices <= {UNDECIDED} else CPU

    def _look(self, call: Call, inputs: list[torch.Tensor], device: torch.device) -> None:
        if self.watch.silent:
            return
        if wait := wait_of(call):
            counted = masks_of(call) if call.name in INDEXES else inputs[:1]  # a mask on the CPU is counted there
            self._look_at_wait(call, wait, on_gpu=any(self.devices.of(tensor).type == "cuda" for tensor in counted))
        if device.type == "cuda" and len(inputs) > 1:
            self._look_for_mixed(call, inputs, device)
        if device.type == "cuda" and call.name in NUMBERS and not (self.regions.compiles and self.regions.depth):
            self._look_at_number(call)  # in compiled code it is a constant, or stays where it is

    def _look_at_wait(self, call: Call, wait: Wait, on_gpu: bool) -> None:
        line = running()
        if self.regions.depth and (line.via or "").startswith("torch/optim/"):
            return  # a compiled optimizer does not read a number back
        if on_gpu:
            self.watch.see("sync", f"aten::{call.name}", wait.why, line)
        if self.regions.depth and wait.sized:
            reason = "a value that it reads back" if wait.why is READS else "a size from the data"
            self.watch.see("break", f"aten::{call.name}", f"breaks the graph: {reason}", line)

    def _look_for_mixed(self, call: Call, inputs: list[torch.Tensor], device: torch.device) -> None:
        misplaced = [tensor for tensor in inputs if tensor.dim() and self.devices.of(tensor) not in (device, UNDECIDED)]
        if not misplaced:
            return
        if call.name in INDEXES and self.devices.of(inputs[0]) == device:
            why = "takes indices on the CPU, which are copied each time"
            return self.watch.see("copy", f"aten::{call.name}", why)
        if call.name in ("copy_", "_foreach_copy_"):
            return self._look_at_copy(call)
        if call.name not in MIXES:
            storages = [key for tensor in misplaced for key in self.devices.keys(tensor)]
            names = sorted({str(self.devices.of(tensor)) for tensor in inputs if tensor.dim()})
            self.watch.see_mixed(f"aten::{call.name}", f"would crash: tensors on {' and '.join(names)}", storages)
        return None

    def _look_at_number(self, call: Call) -> None:
        """`x[rows] = 1` copies the number to the GPU, `x.masked_fill(mask, x.max())` reads it back. The number of
        `x[mask] = 1` is an argument of the kernel."""
        number = call.argument(*NUMBERS[call.name])
        if not isinstance(number, torch.Tensor) or number.dim():
            return
        on_gpu = self.devices.of(number).type == "cuda"
        if call.name.startswith("masked_fill"):
            if on_gpu:
                self.watch.see("sync", f"aten::{call.name}", "reads the number back: use torch.where")
        elif call.name == "copy_":
            self._look_at_copy(call)
        elif not on_gpu and not masks_of(call):
            why = "copies the number to the GPU and waits: use index_fill_, or put a tensor that is there"
            self.watch.see("copy", f"aten::{call.name}", why)

    def _look_at_copy(self, call: Call) -> None:
        target, source, non_blocking = call.args[0], call.args[1], call.argument("non_blocking", 2)
        if isinstance(target, (list, tuple)):
            target, source = target[0], source[0]
        self.see_copy(f"aten::{call.name}", source, self.devices.of(target), bool(non_blocking))

    def see_copy(self, operator: str, source: torch.Tensor, to: torch.device, non_blocking: bool) -> None:
        """Record a copy from device to device if the host waits for it."""
        if source.numel() == 0:
            return
        if to.type == "cpu":
            if not non_blocking:
                self.watch.see("sync", operator, "copies to the host and waits")
        elif self.devices.of(source).type != "cuda" and (
            why := _why_it_waits(self.devices.is_pinned(source), non_blocking, source.nbytes)
        ):
            self.watch.see("copy", operator, f"copies to the GPU and waits ({why})")


def _why_it_waits(is_pinned: bool, non_blocking: bool, copied_bytes: int) -> str:
    """Why the host waits for a copy to the GPU; empty if it does not."""
    if not non_blocking:
        return "pinned, but without non_blocking=True" if is_pinned else "pageable"
    if is_pinned or copied_bytes <= _STAGED_BYTES:
        return ""
    return "its source is not pinned: for all its non_blocking=True, the driver takes it piece by piece"


def _tensors(values: Iterable[Any]) -> Iterator[torch.Tensor]:
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _tensors(value)


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


_WAITS = {
    "_local_scalar_dense": Wait(READS),
    **dict.fromkeys(("index", "_unsafe_index"), Wait(_MASK, unless=lambda call: not masks_of(call))),
    **dict.fromkeys(PUTS, Wait(_MASK, unless=_fills)),
    "masked_select": Wait(_MASK),
    **dict.fromkeys(_SIZED_BY_DATA, Wait("counts its result: its size depends on the data")),
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
    "segment_reduce": Wait("checks the lengths", sized=False, unless=lambda call: bool(call.kwargs.get("unsafe"))),
    "_linalg_check_errors": Wait(_CHECKS, sized=False),
    "linalg_eig": Wait("computes on the CPU"),
    "_linalg_svd": Wait(_CHECKS, sized=False),
}
