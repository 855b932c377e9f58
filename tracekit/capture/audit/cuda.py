"""What `torch.cuda` says while a GPU is pretended: that there is one, of no particular make."""

import contextlib
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch

from tracekit.capture.audit.devices import GPU, Devices, normalized
from tracekit.capture.audit.replacing import Replacing
from tracekit.capture.audit.watch import Watch

NAME = "emulated GPU"
_MEMORY = 80 * 2**30
_NO_MEMORY = "it asked how much memory is in use: it was told what its tensors take now, peaks and caches left out"
_NO_TIME = "it timed with CUDA events: it was told the CPU's times"
_NO_GRAPHS = "it records CUDA graphs by hand, and that is not emulated: audit it with them switched off"
_WAITS = "waits for all that the GPU was given"
_FREES = "gives memory back, and waits for the GPU to be done with it"


def replace(replacing: Replacing, devices: Devices, watch: Watch) -> None:
    """Let torch.cuda, torch.accelerator and what asks them pretend."""
    waits = _Waits(watch)
    memory = _memory(devices, watch)
    names = {**_state(), **memory, **_streams(waits), "synchronize": waits.synchronize}
    names["empty_cache"] = waits.empty_cache
    replacing.replace(torch.cuda, **names, **_random())
    replacing.replace(torch.cuda.random, **_random())
    replacing.replace(torch.cuda.memory, **memory, empty_cache=waits.empty_cache)
    replacing.replace(torch.backends.cudnn, is_acceptable=_always(False))
    replacing.replace(torch.cuda.nvtx, range_push=_nothing, range_pop=_nothing, mark=_nothing)
    replacing.replace(torch, Generator=_Generator, Event=_event_kind(waits), Stream=_stream_kind(waits))
    if hasattr(torch, "accelerator"):
        replacing.replace(torch.accelerator, **_accelerator(), **memory, **_streams(waits))
        replacing.replace(torch.accelerator, synchronize=waits.synchronize, empty_cache=waits.empty_cache)
    _replace_autocast(replacing)


class _Waits:
    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self.note = watch.note

    def synchronize(self, device: Any = None) -> None:
        self._watch.see("sync", "torch.cuda.synchronize", _WAITS)

    def empty_cache(self) -> None:
        self._watch.see("sync", "torch.cuda.empty_cache", _FREES)

    def of(self, what: str) -> Callable[..., None]:
        return lambda *_: self._watch.see("sync", f"{what}.synchronize", _WAITS)


def _refuse_graphs(*_: Any, **__: Any) -> None:
    raise NotImplementedError(_NO_GRAPHS)


def _nothing(*_: Any, **__: Any) -> None:
    return None


def _always(value: Any) -> Callable[..., Any]:
    return lambda *_, **__: value


def _state() -> dict[str, Any]:
    properties = SimpleNamespace(
        name=NAME, major=9, minor=0, total_memory=_MEMORY, multi_processor_count=132, warp_size=32, is_integrated=False
    )
    return {
        "_lazy_init": _nothing,
        "_lazy_call": _nothing,
        "_is_in_bad_fork": _always(False),
        "init": _nothing,
        "is_initialized": _always(True),
        "is_available": _always(True),
        "device_count": _always(1),
        "current_device": _always(0),
        "set_device": _nothing,
        "device": _device_context,
        "device_of": _device_context,
        "get_device_name": _always(NAME),
        "get_device_capability": _always((9, 0)),
        "get_device_properties": _always(properties),
        "get_arch_list": _always(["sm_90"]),
        "is_bf16_supported": _always(True),
        "is_tf32_supported": _always(True),
        "is_current_stream_capturing": _always(False),
        "can_device_access_peer": _always(False),
        **dict.fromkeys(("CUDAGraph", "graph", "make_graphed_callables"), _refuse_graphs),
        "ipc_collect": _nothing,
        "set_per_process_memory_fraction": _nothing,
        "utilization": _always(0),
    }


def _memory(devices: Devices, watch: Watch) -> dict[str, Any]:
    """What lies on the GPU now; the most that ever did, it does not know."""

    def allocated(*_: Any) -> int:
        watch.note(_NO_MEMORY)
        return devices.allocated_bytes()

    def stats(*_: Any) -> dict[str, int]:
        return {f"{what}_bytes.all.{when}": allocated() for what in ("allocated", "reserved") for when in _WHEN}

    amounts = ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved")
    forgets = ("reset_peak_memory_stats", "reset_accumulated_memory_stats", "reset_max_memory_allocated")
    return {
        **dict.fromkeys([*amounts, "memory_cached", "max_memory_cached"], allocated),
        **dict.fromkeys([*forgets, "reset_max_memory_cached"], _nothing),
        "memory_stats": stats,
        "memory_summary": _always(f"{NAME}: no summary"),
        "mem_get_info": lambda *_: (_MEMORY - allocated(), _MEMORY),
    }


_WHEN = ("current", "peak", "allocated", "freed")


def _streams(waits: _Waits) -> dict[str, Any]:
    stream = _stream_kind(waits)
    return {
        "Event": _event_kind(waits),
        "Stream": stream,
        "current_stream": lambda device=None: stream(),
        "default_stream": lambda device=None: stream(),
        "set_stream": _nothing,
        "stream": contextlib.nullcontext,
    }


def _random() -> dict[str, Any]:
    """One generator for both devices: the CPU's, which torch.manual_seed seeds."""
    return {
        **dict.fromkeys(("manual_seed", "manual_seed_all", "seed", "seed_all"), _nothing),
        "initial_seed": torch.initial_seed,
        "get_rng_state": lambda device=None: torch.get_rng_state(),
        "set_rng_state": lambda state, device=None: torch.set_rng_state(state),
        "get_rng_state_all": lambda: [torch.get_rng_state()],
        "set_rng_state_all": lambda states: torch.set_rng_state(states[0]),
    }


def _accelerator() -> dict[str, Any]:
    return {
        "is_available": _always(True),
        "device_count": _always(1),
        "current_accelerator": _always(torch.device("cuda")),
        "current_device_index": _always(0),
        "current_device_idx": _always(0),
        "set_device_index": _nothing,
        "set_device_idx": _nothing,
    }


def _replace_autocast(replacing: Replacing) -> None:
    """A GPU's autocast is the CPU's, with the GPU's dtype."""
    autocast = torch.amp.autocast_mode.autocast
    begin = autocast.__init__

    def beginning(self: Any, device_type: str, dtype: Any = None, **options: Any) -> None:
        if device_type == "cuda":
            device_type, dtype = "cpu", dtype or torch.float16
        begin(self, device_type, dtype, **options)

    replacing.replace(autocast, __init__=beginning)
    for name in ("is_autocast_enabled", "get_autocast_dtype"):
        replacing.replace(torch, **{name: _for_cpu(getattr(torch, name))})


def _for_cpu(ask: Callable[..., Any]) -> Callable[..., Any]:
    return lambda device_type="cuda": ask("cpu" if device_type == "cuda" else device_type)


class _device_context:  # noqa: N801 - torch's name
    """In place of `torch.cuda.device`."""

    def __init__(self, device: Any) -> None:
        self.idx = GPU.index

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        return None


def _event_kind(waits: _Waits) -> type:
    class Event:
        """Stamps the CPU's clock: its times say nothing of a GPU."""

        def __init__(self, *_: Any, **__: Any) -> None:
            self._ns = 0

        def record(self, stream: Any = None) -> None:
            self._ns = time.perf_counter_ns()

        def elapsed_time(self, end: Any) -> float:
            waits.note(_NO_TIME)
            return float(max(end._ns - self._ns, 1)) / 1e6

        query = _always(True)
        wait = _nothing
        synchronize = waits.of("torch.cuda.Event")

    return Event


def _stream_kind(waits: _Waits) -> type:
    class Stream:
        """There is one, and it is always done."""

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

        query = _always(True)
        is_capturing = _always(False)
        wait_event = wait_stream = _nothing
        synchronize = waits.of("torch.cuda.Stream")

    return Stream


class _AnyGenerator(type(torch._C.Generator)):  # type: ignore[misc]
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, torch._C.Generator)


class _Generator(torch._C.Generator, metaclass=_AnyGenerator):  # type: ignore[misc]
    """The CPU's, which says where it was made for."""

    def __new__(cls, device: Any = "cpu") -> Any:
        made = super().__new__(cls)
        made._pretended = normalized(device)
        return made

    @property
    def device(self) -> torch.device:
        return self._pretended
