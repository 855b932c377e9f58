"""How long steps take: by the processor's clock or, where a GPU computes, by events on its stream.

An event is recorded where a step ends, and asked later whether the GPU has passed it: nothing ever waits for the GPU.
Meanwhile the step is pending.
"""

import os
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import torch

from tracekit.capture.child.replaced import out_of_dynamos_sight
from tracekit.capture.device import gpu
from tracekit.watched.record import UNKNOWN
from tracekit.watching.tally import Tally

EVENTS = 64  # steps that the host may be ahead of the GPU
_SCHEDSTAT = "/proc/thread-self/schedstat"  # Linux: ns on a core, ns ready without one, turns
_BYTES = 64
_SHORT_NS, _SHORT_PART = 1_000_000, 32  # off the core; of a long step, one part in so many
_UNREAD_NS = 2_000_000  # asking the system takes µs: the processor time of shorter steps is known of some of them

_Step = TypeVar("_Step")


class Clock(Protocol[_Step]):
    """Tells the durations of steps, in ns, in their order, once they are known."""

    name: str  # as in the facts of a record

    def end(self, step: _Step, host_ns: int) -> Iterable[tuple[_Step, int]]:
        """A step ends here, and the next one begins: the steps whose durations are known now."""

    def restart(self) -> None:
        """The step that began at the last end begins here instead."""


class HostClock(Generic[_Step]):
    """Steps take as long as the host takes for them."""

    name = "perf_counter"

    def end(self, step: _Step, host_ns: int) -> Iterable[tuple[_Step, int]]:
        """See Clock."""
        return ((step, host_ns),)

    def restart(self) -> None:
        """Nothing is kept: the host's own times begin anew."""


class _Pending(NamedTuple, Generic[_Step]):
    step: _Step
    begin: Any  # an event; None if there was none
    end: Any


class GpuClock(Generic[_Step]):
    """Steps take as long as a GPU's stream takes from one end to the next."""

    name = "cuda events"

    def __init__(self, record: Callable[[Any], None], make: Callable[[], Any], recordable: Callable[[], bool]) -> None:
        self._record, self._make, self._is_recordable = record, make, recordable
        self._spare: list[Any] = []
        self._pending: deque[_Pending[_Step]] = deque()
        self._last: Any = None  # what has begun before is not timed

    @staticmethod
    def of(device: int) -> "GpuClock[_Step]":
        """The clock of the stream that is current on this device where a step ends."""
        cuda = gpu()

        def record(event: Any) -> None:
            event.record(cuda.current_stream(device))

        # An event that is recorded while a graph is, would become part of it.
        return GpuClock(record, lambda: cuda.Event(enable_timing=True), lambda: not cuda.is_current_stream_capturing())

    def end(self, step: _Step, host_ns: int) -> Iterable[tuple[_Step, int]]:
        """See Clock. The duration is UNKNOWN where no event could be recorded, or the GPU is too far behind."""
        begin, self._last = self._last, self._event()
        self._pending.append(_Pending(step, begin, self._last))
        known: list[tuple[_Step, int]] = []
        if self._last is None:  # even a question would spoil the graph that is being recorded
            return known
        while self._pending and (self._is_over() or len(self._pending) > EVENTS):
            oldest = self._pending[0]
            # On another stream than before, the end may be passed before the beginning.
            is_timed = all(event is not None and event.query() for event in oldest[1:])
            step_ns = round(oldest.begin.elapsed_time(oldest.end) * 1e6) if is_timed else UNKNOWN
            known.append((oldest.step, step_ns if step_ns >= 0 else UNKNOWN))
            self._pending.popleft()
            if oldest.begin is not None:
                self._spare.append(oldest.begin)
        return known

    def restart(self) -> None:
        """See Clock."""
        self._last = self._event()  # the one before stays the end of a pending step, or is let go

    def _event(self) -> Any:
        if not self._is_recordable():
            return None
        event = self._spare.pop() if self._spare else self._make()
        self._record(event)
        return event

    def _is_over(self) -> bool:
        end = self._pending[0].end
        return end is None or bool(end.query())


class TallyClock:
    """The clock of a GPU whose events the tally records where nothing is to be said of a step, and asks."""

    name = GpuClock.name

    def __init__(self, tally: Tally, device: int) -> None:
        self._tally, self._device = tally, device
        self.is_used = False
        with suppress(AttributeError):  # private names of torch's; those of Python take several times as long
            event: Any = torch._C._CudaEventBase
            self._record, self._stream_of = event.record, torch._C._cuda_getCurrentStream
            self._is_capturing: Callable[[], bool] = torch._C._cuda_isCurrentStreamCapturing
            make = out_of_dynamos_sight(partial(gpu().Event, enable_timing=True))
            calls = make, self._record, self._stream_of, self._is_capturing, event.query, event.elapsed_time, device
            self.is_used = tally.use_gpu(*calls)

    def end(self, number: int) -> bool:
        """The step of that number, which is in the record, ends here; whether the GPU may be asked about earlier ones:
        while a graph is recorded, even a question would spoil it."""
        event = self._event()
        self._tally.mark(number, event)
        return event is not None

    def restart(self) -> None:
        """See Clock."""
        self._tally.restart(self._event())

    def _event(self) -> Any:
        if self._is_capturing():  # it would become part of the graph
            return None
        if (key := self._stream_of(self._device)) != self._tally.stream_key:
            self._tally.stream, self._tally.stream_key = gpu().current_stream(self._device), key
        event = self._tally.fresh_event()
        self._record(event, self._tally.stream)
        return event


class ThreadClock:
    """How long this thread had a core in a step, and how long it was ready without one; kept in a tally."""

    def __init__(self, tally: Tally) -> None:
        self._kept = tally
        with suppress(OSError):  # only Linux tells
            tally.schedstat = os.open(_SCHEDSTAT, os.O_RDONLY | os.O_CLOEXEC)
        tally.processor_ns = time.thread_time_ns()
        tally.queued_ns = 0  # as the file told last
        tally.queued_ns = self._queued()
        tally.unread_ns = 0  # what has passed since the processor time was read
        tally.off_core_ns = 0  # since the file was read

    def passed(self, host_ns: int) -> tuple[int, int]:
        """Both in ns, of the step that took the last `host_ns`; UNKNOWN where the system was asked shortly before. When
        it is asked again, the steps between are taken to have had a core throughout: they are short.

        The second is also UNKNOWN where the system does not tell, and not asked for where it is short: a thread that
        had a core nearly all the time cannot have waited for one. What such steps leave out adds up to no more than
        is short: otherwise, a step that sleeps would be told to have waited for all that earlier ones waited for."""
        kept = self._kept
        unread_ns = kept.unread_ns + host_ns
        if unread_ns < _UNREAD_NS:
            kept.unread_ns = unread_ns
            return UNKNOWN, UNKNOWN
        processor_ns = time.thread_time_ns()
        had_core_ns = processor_ns - kept.processor_ns
        on_core = max(had_core_ns - kept.unread_ns, 0)
        kept.off_core_ns += max(unread_ns - had_core_ns, 0)
        kept.processor_ns, kept.unread_ns = processor_ns, 0
        if kept.off_core_ns < max(_SHORT_NS, host_ns // _SHORT_PART):
            return on_core, 0
        kept.off_core_ns = 0
        if kept.schedstat < 0:
            return on_core, UNKNOWN
        before, kept.queued_ns = kept.queued_ns, self._queued()
        return on_core, max(min(kept.queued_ns - before, host_ns - on_core), 0)

    def close(self) -> None:
        """Close the system's file."""
        if self._kept.schedstat >= 0:
            os.close(self._kept.schedstat)
            self._kept.schedstat = -1

    def _queued(self) -> int:
        kept = self._kept
        with suppress(OSError):  # the thread has ended, and another one asks
            return int(os.pread(kept.schedstat, _BYTES, 0).split()[1]) if kept.schedstat >= 0 else 0
        return kept.queued_ns
