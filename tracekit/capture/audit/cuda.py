"""What `torch.cuda` reports while a GPU is emulated: that there is one, of an unspecified model."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch

from tracekit.capture.audit.devices import GPU, Devices, normalized
from tracekit.capture.audit.streams import Waits, always, event_kind, nothing, stream_kind, streams
from tracekit.capture.audit.watch import Watch
from tracekit.capture.child.replaced import Replacements

NAME = "emulated GPU"
_MEMORY = 80 * 2**30
_NO_MEMORY = "the script asked how much memory is in use, and got the size of its tensors, without peaks and caches"
_NO_GRAPHS = "the script records CUDA graphs by hand, which is not emulated: audit it with them switched off"


def replace(replacements: Replacements, devices: Devices, watch: Watch) -> None:
    """Make torch.cuda, torch.accelerator and what depends on them pretend that there is a GPU."""
    waits = Waits(watch)
    memory = _memory(devices, watch)
    names = {**_state(), **memory, **streams(waits), "synchronize": waits.synchronize}
    names["empty_cache"] = waits.empty_cache
    replacements.put_all(torch.cuda, **names, **_random())
    replacements.put_all(torch.cuda.random, **_random())
    replacements.put_all(torch.cuda.memory, **memory, empty_cache=waits.empty_cache)
    replacements.put_all(torch.backends.cudnn, is_acceptable=always(False))
    replacements.put_all(torch.cuda.nvtx, range_push=nothing, range_pop=nothing, mark=nothing)
    replacements.put_all(
        torch, device=_Device, Generator=_Generator, Event=event_kind(waits), Stream=stream_kind(waits)
    )
    if hasattr(torch, "accelerator"):
        replacements.put_all(torch.accelerator, **_accelerator(), **memory, **streams(waits))
        replacements.put_all(torch.accelerator, synchronize=waits.synchronize, empty_cache=waits.empty_cache)
    _replace_autocast(replacements)


def _refuse_graphs(*_: Any, **__: Any) -> None:
    raise NotImplementedError(_NO_GRAPHS)


def _state() -> dict[str, Any]:
    properties = SimpleNamespace(
        name=NAME, major=9, minor=0, total_memory=_MEMORY, multi_processor_count=132, warp_size=32, is_integrated=False
    )
    return {
        "_lazy_init": nothing,
        "_lazy_call": nothing,
        "_is_in_bad_fork": always(False),
        "init": nothing,
        "is_initialized": always(True),
        "is_available": always(True),
        "device_count": always(1),
        "current_device": always(0),
        "set_device": nothing,
        "device": _device_context,
        "device_of": _device_context,
        "get_device_name": always(NAME),
        "get_device_capability": always((9, 0)),
        "get_device_properties": always(properties),
        "get_arch_list": always(["sm_90"]),
        "is_bf16_supported": always(True),
        "is_tf32_supported": always(True),
        "is_current_stream_capturing": always(False),
        "can_device_access_peer": always(False),
        **dict.fromkeys(("CUDAGraph", "graph", "make_graphed_callables"), _refuse_graphs),
        "ipc_collect": nothing,
        "set_per_process_memory_fraction": nothing,
        "utilization": always(0),
    }


def _memory(devices: Devices, watch: Watch) -> dict[str, Any]:
    """Functions that report the memory in use on the GPU now; peaks are unknown."""

    def allocated(*_: Any) -> int:
        watch.note(_NO_MEMORY)
        return devices.allocated_bytes()

    def stats(*_: Any) -> dict[str, int]:
        return {
            f"{kind}_bytes.all.{statistic}": allocated() for kind in ("allocated", "reserved") for statistic in _WHEN
        }

    amounts = ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved")
    forgets = ("reset_peak_memory_stats", "reset_accumulated_memory_stats", "reset_max_memory_allocated")
    return {
        **dict.fromkeys([*amounts, "memory_cached", "max_memory_cached"], allocated),
        **dict.fromkeys([*forgets, "reset_max_memory_cached"], nothing),
        "memory_stats": stats,
        "memory_summary": always(f"{NAME}: no summary"),
        "mem_get_info": lambda *_: (_MEMORY - allocated(), _MEMORY),
    }


_WHEN = ("current", "peak", "allocated", "freed")


def _random() -> dict[str, Any]:
    """Functions for random numbers: both devices use the CPU's generator, which torch.manual_seed seeds."""
    return {
        **dict.fromkeys(("manual_seed", "manual_seed_all", "seed", "seed_all"), nothing),
        "initial_seed": torch.initial_seed,
        "get_rng_state": lambda device=None: torch.get_rng_state(),
        "set_rng_state": lambda state, device=None: torch.set_rng_state(state),
        "get_rng_state_all": lambda: [torch.get_rng_state()],
        "set_rng_state_all": lambda states: torch.set_rng_state(states[0]),
    }


def _accelerator() -> dict[str, Any]:
    return {
        "is_available": always(True),
        "device_count": always(1),
        "current_accelerator": always(torch.device("cuda")),
        "current_device_index": always(0),
        "current_device_idx": always(0),
        "set_device_index": nothing,
        "set_device_idx": nothing,
        "device_index": _device_context,
    }


def _replace_autocast(replacements: Replacements) -> None:
    """Make the GPU's autocast that of the CPU, with the GPU's dtype."""
    autocast = torch.amp.autocast_mode.autocast
    begin = autocast.__init__

    def beginning(self: Any, device_type: str, dtype: Any = None, **options: Any) -> None:
        if device_type == "cuda":
            device_type, dtype = "cpu", dtype or torch.float16
        begin(self, device_type, dtype, **options)

    replacements.put_all(autocast, __init__=beginning)
    for name in ("is_autocast_enabled", "get_autocast_dtype"):
        replacements.put_all(torch, **{name: _for_cpu(getattr(torch, name))})


def _for_cpu(ask: Callable[..., Any]) -> Callable[..., Any]:
    return lambda device_type="cuda": ask("cpu" if device_type == "cuda" else device_type)


class _device_context:  # noqa: N801 - torch's name
    """Replaces `torch.cuda.device`."""

    def __init__(self, device: Any) -> None:
        self.idx = GPU.index

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        return None


_TRUE_DEVICE = torch.device


class _AnyDevice(type):
    """Makes and recognises devices as `torch.device` does; as on a machine with a GPU, a bare number means a GPU."""

    def __call__(cls, *args: Any, **options: Any) -> torch.device:
        if isinstance(number := args[0] if args else options.get("device"), int):
            return _TRUE_DEVICE("cuda", number)
        return _TRUE_DEVICE(*args, **options)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, _TRUE_DEVICE)


class _Device(metaclass=_AnyDevice):
    """Replaces `torch.device`, under the same name, because devices are pickled by name."""

    __module__, __qualname__ = "torch", "device"


class _AnyGenerator(type(torch._C.Generator)):  # type: ignore[misc]
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, torch._C.Generator)


class _Generator(torch._C.Generator, metaclass=_AnyGenerator):  # type: ignore[misc]
    """The CPU's generator, which reports the device that it was made for."""

    def __new__(cls, device: Any = "cpu") -> Any:
        generator = super().__new__(cls)
        generator._pretended = normalized(device)
        return generator

    @property
    def device(self) -> torch.device:
        return self._pretended
