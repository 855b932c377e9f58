"""Streams and events while a GPU is emulated: there is one stream, which has always finished its work."""

import contextlib
import time
from collections.abc import Callable
from typing import Any

import torch

from tracekit.capture.audit.devices import GPU
from tracekit.capture.audit.watch import Watch

_NO_TIME = "the script timed with CUDA events, and got the CPU's times"
_WAITS = "waits for all work on the GPU"
_FREES = "releases memory, and waits for the GPU to finish using it"


class Waits:
    """Replaces calls by which the host waits for the GPU, and records them."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self.note = watch.note

    def synchronize(self, device: Any = None) -> None:
        """Wait for all streams."""
        self._watch.see("sync", "torch.cuda.synchronize", _WAITS)

    def empty_cache(self) -> None:
        """Release memory, which also waits."""
        self._watch.see("sync", "torch.cuda.empty_cache", _FREES)

    def of(self, kind: str) -> Callable[..., None]:
        """A replacement for waiting for one event or stream."""
        return lambda *_: self._watch.see("sync", f"{kind}.synchronize", _WAITS)


def streams(waits: Waits) -> dict[str, Any]:
    """The functions of `torch.cuda` and `torch.accelerator` about streams."""
    stream = stream_kind(waits)
    return {
        "Event": event_kind(waits),
        "Stream": stream,
        "current_stream": lambda device=None: stream(),
        "default_stream": lambda device=None: stream(),
        "set_stream": nothing,
        "stream": contextlib.nullcontext,
    }


def event_kind(waits: Waits) -> type:
    """A replacement for `torch.cuda.Event`."""

    class Event:
        """An event that records the CPU's time, which says nothing about a GPU."""

        def __init__(self, *_: Any, **__: Any) -> None:
            self._ns = 0

        def record(self, stream: Any = None) -> None:
            self._ns = time.perf_counter_ns()

        def elapsed_time(self, end: Any) -> float:
            waits.note(_NO_TIME)
            return float(max(end._ns - self._ns, 1)) / 1e6

        query = always(True)
        wait = nothing
        synchronize = waits.of("torch.cuda.Event")

    return Event


def stream_kind(waits: Waits) -> type:
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
        synchronize = waits.of("torch.cuda.Stream")

    return Stream


def nothing(*_: Any, **__: Any) -> None:
    """Replaces functions that have nothing to do here."""


def always(value: Any) -> Callable[..., Any]:
    """A replacement for a function whose answer is always the same."""
    return lambda *_, **__: value
