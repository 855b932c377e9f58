"""What `torch.cuda` reports while a GPU is emulated: that there is one, of an unspecified model, with one stream,
which has always finished its work.
"""

import contextlib
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch

from tracekit.capture.audit.emulation import GPU, Devices, normalized
from tracekit.capture.audit.watch import Watch
from tracekit.capture.child.replaced import Replacements

NAME = "emulated GPU"
_MEMORY = 80 * 2**30
_NO_MEMORY = "the script asked how much memory is in use, and got the size of its tensors, without peaks and caches"
_NO_GRAPHS = "the script records CUDA graphs by hand, which is not emulated: audit it with them switched off"
_WHEN = ("current", "peak", "allocated", "freed")
_TRUE_DEVICE = torch.device
_NO_TIME = "the script timed with CUDA events, and got the CPU's times"
_FREES = "releases memory, and waits for the GPU to finish using it"


def replace(replacements: Replacements, devices: Devices, watch: Watch) -> None:
    """Make torch.cuda, torch.accelerator and what depends on them pretend that there is a GPU."""
    memory, random = _memory(devices, watch), _random()
    empty_cache = host_wait(watch, "torch.cuda.empty_cache", _FREES)
    calls = {"synchronize": host_wait(watch, "torch.cuda.synchronize"), "empty_cache": empty_cache}
    replacements.put_all(torch.cuda, **_state(), **memory, **streams(watch), **calls, **random)
    replacements.put_all(torch.cuda.random, **random)
    replacements.put_all(torch.cuda.memory, **memory, empty_cache=empty_cache)
    replacements.put_all(torch.backends.cudnn, is_acceptable=always(False))
    replacements.put_all(torch.cuda.nvtx, range_push=nothing, range_pop=nothing, mark=nothing)
    replacements.put_all(
        torch, device=_Device, Generator=_Generator, Event=event_kind(watch), Stream=stream_kind(watch)
    )
    if hasattr(torch, "accelerator"):
        replacements.put_all(
            torch.accelerator,
            is_available=always(True),
            device_count=always(1),
            current_accelerator=always(torch.device("cuda")),
            **dict.fromkeys(("current_device_index", "current_device_idx"), always(0)),
            **dict.fromkeys(("set_device_index", "set_device_idx"), nothing),
            device_index=_device_context,
            **memory,
            **streams(watch),
            **calls,
        )
    # The GPU's autocast is that of the CPU, with the GPU's dtype.
    autocast = torch.amp.autocast_mode.autocast
    begin = autocast.__init__

    def beginning(self: Any, device_type: str, dtype: Any = None, **options: Any) -> None:
        if device_type == "cuda":
            device_type, dtype = "cpu", dtype or torch.float16
        begin(self, device_type, dtype, **options)

    def for_cpu(ask: Callable[..., Any]) -> Callable[..., Any]:
        return lambda device_type="cuda": ask("cpu" if device_type == "cuda" else device_type)

    replacements.put_all(autocast, __init__=beginning)
    for name in ("is_autocast_enabled", "get_autocast_dtype"):
        replacements.put_all(torch, **{name: for_cpu(getattr(torch, name))})


def _state() -> dict[str, Any]:
    properties = SimpleNamespace(
        name=NAME, major=9, minor=0, total_memory=_MEMORY, multi_processor_count=132, warp_size=32, is_integrated=False
    )

    def refuse_graphs(*_: Any, **__: Any) -> None:
        raise NotImplementedError(_NO_GRAPHS)

    return {
        **dict.fromkeys(("_lazy_init", "_lazy_call", "init", "set_device", "ipc_collect"), nothing),
        "set_per_process_memory_fraction": nothing,
        **dict.fromkeys(("is_initialized", "is_available", "is_bf16_supported", "is_tf32_supported"), always(True)),
        **dict.fromkeys(("_is_in_bad_fork", "is_current_stream_capturing", "can_device_access_peer"), always(False)),
        "device_count": always(1),
        **dict.fromkeys(("current_device", "utilization"), always(0)),
        **dict.fromkeys(("device", "device_of"), _device_context),
        "get_device_name": always(NAME),
        "get_device_capability": always((9, 0)),
        "get_device_properties": always(properties),
        "get_arch_list": always(["sm_90"]),
        **dict.fromkeys(("CUDAGraph", "graph", "make_graphed_callables"), refuse_graphs),
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


class _device_context:  # noqa: N801 - torch's name
    """Replaces `torch.cuda.device`."""

    def __init__(self, device: Any) -> None:
        self.idx = GPU.index

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        return None


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


def host_wait(watch: Watch, operator: str, why: str = "waits for all work on the GPU") -> Callable[..., None]:
    """A replacement for a function by which the host waits for the GPU; it records that."""
    return lambda *_, **__: watch.see("sync", operator, why)


def streams(watch: Watch) -> dict[str, Any]:
    """The functions of `torch.cuda` and `torch.accelerator` about streams."""
    stream = stream_kind(watch)
    return {
        "Event": event_kind(watch),
        "Stream": stream,
        "current_stream": lambda device=None: stream(),
        "default_stream": lambda device=None: stream(),
        "set_stream": nothing,
        "stream": contextlib.nullcontext,
    }


def event_kind(watch: Watch) -> type:
    """A replacement for `torch.cuda.Event`."""

    class Event:
        """An event that records the CPU's time, which says nothing about a GPU."""

        def __init__(self, *_: Any, **__: Any) -> None:
            self._ns = 0

        def record(self, stream: Any = None) -> None:
            self._ns = time.perf_counter_ns()

        def elapsed_time(self, end: Any) -> float:
            watch.note(_NO_TIME)
            return float(max(end._ns - self._ns, 1)) / 1e6

        query = always(True)
        wait = nothing
        synchronize = host_wait(watch, "torch.cuda.Event.synchronize")

    return Event


def stream_kind(watch: Watch) -> type:
    """A replacement for `torch.cuda.Stream`."""

    class Stream:
        """The only stream, which has always finished its work."""

        device, device_type, device_index, stream_id, cuda_stream, priority = GPU, 1, 0, 0, 0, 0

        def __init__(self, *_: Any, **__: Any) -> None:
            pass

        def __enter__(self) -> Any:
            return self

        def __exit__(self, *_: object) -> None:
            return None

        def record_event(self, event: Any = None) -> Any:
            event = event or torch.cuda.Event()
            event.record()
            return event

        query = always(True)
        is_capturing = always(False)
        wait_event = wait_stream = nothing
        synchronize = host_wait(watch, "torch.cuda.Stream.synchronize")

    return Stream


def nothing(*_: Any, **__: Any) -> None:
    """Replaces functions that have nothing to do here."""


def always(value: Any) -> Callable[..., Any]:
    """A replacement for a function whose answer is always the same."""
    return lambda *_, **__: value
