"""What only a few questions need of a trace, and is looked up again in its file: the arguments of some events, and
allocations. The source of the trace knows how (`tracekit.trace.sources`).
"""

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct

from tracekit.base.intervals import Bools, Ints
from tracekit.trace.model import Trace
from tracekit.trace.reading.event_details import NOTHING, value_of

Inputs = list[tuple[int, ...]]  # the dimensions of each input; () for what is not a tensor, or has none
BYTES_OF_TYPE = {
    **dict.fromkeys(("double", "long", "long int", "int64_t", "c10::complex<float>"), 8),
    **dict.fromkeys(("float", "int"), 4),
    **dict.fromkeys(("c10::BFloat16", "c10::Half", "short", "short int"), 2),
    **dict.fromkeys(("bool", "unsigned char", "signed char", "c10::Float8_e4m3fn", "c10::Float8_e5m2"), 1),
}


class Arguments(msgspec.Struct, gc=False):
    """The arguments of one event, as written; what was not recorded is null."""

    dims: msgspec.Raw = msgspec.field(default=NOTHING, name="Input Dims")
    kinds: msgspec.Raw = msgspec.field(default=NOTHING, name="Input type")
    steps: msgspec.Raw = msgspec.field(default=NOTHING, name="Input Strides")
    occupied: msgspec.Raw = msgspec.field(default=NOTHING, name="est. achieved occupancy %")
    blocks: msgspec.Raw = msgspec.field(default=NOTHING, name="blocks per SM")
    gpu_context: msgspec.Raw = msgspec.field(default=NOTHING, name="context")

    @property
    def inputs(self) -> Inputs | None:
        """The dimensions of an operator's inputs, lists of tensors one by one; None if they were not recorded."""
        return _dims(self.dims)

    @property
    def strides(self) -> Inputs | None:
        """The strides of the inputs, in the form of `inputs`."""
        return _dims(self.steps)

    @property
    def types(self) -> list[str]:
        """The type of each input: `float`, `c10::BFloat16`, `ScalarList`, ""."""
        decoded = value_of(self.kinds)
        return [str(kind) for kind in decoded] if isinstance(decoded, list) else []

    @property
    def occupancy(self) -> float | None:
        """The part of the GPU's warps that a kernel keeps occupied, as the profiler estimates it from the launch."""
        decoded = value_of(self.occupied)
        return decoded / 100 if isinstance(decoded, int | float) else None

    @property
    def blocks_per_sm(self) -> float | None:
        """How many blocks of a kernel each multiprocessor gets; if it is below 1, some get none."""
        decoded = value_of(self.blocks)
        return float(decoded) if isinstance(decoded, int | float) else None

    @property
    def context(self) -> int | None:
        """The CUDA context that a GPU activity belongs to; processes do not share one."""
        decoded = value_of(self.gpu_context)
        return decoded if isinstance(decoded, int) else None


def _dims(raw: msgspec.Raw) -> Inputs | None:
    decoded = value_of(raw)
    return [*_flat(decoded)] if isinstance(decoded, list) else None


def _flat(nested: list[Any]) -> Iterator[tuple[int, ...]]:
    for dims in nested:
        if isinstance(dims, list) and any(isinstance(inner, list) for inner in dims):
            yield from _flat(dims)
        elif isinstance(dims, list) and all(isinstance(length, int) for length in dims):
            yield tuple(dims)
        else:
            yield ()


class MemoryEvents(Struct, frozen=True):
    """Allocations and releases on one device in order of time, as columns."""

    device: str  # cpu, cuda:0 …
    ts_ns: Ints
    bytes: Ints  # negative for a release
    address: Ints  # -1 where it was not recorded
    allocated: Ints  # in total on the device after the event; -1 where it was not recorded
    reserved: Ints  # by the allocator; -1 where it was not recorded
    track: Ints  # row of the trace's tracks; -1 for a thread that has none

    def __len__(self) -> int:
        return len(self.ts_ns)

    @property
    def addressed(self) -> bool:
        """Whether every event has its address, so that each release can be matched with its allocation."""
        return bool((self.address >= 0).all())

    def chosen(self, mask: Bools) -> "MemoryEvents":
        """Some of them."""
        names = ("ts_ns", "bytes", "address", "allocated", "reserved", "track")
        return MemoryEvents(self.device, **{name: getattr(self, name)[mask] for name in names})


def arguments(trace: Trace, rows: Ints) -> dict[int, Arguments]:
    """What was recorded about these events, by row, without events that have no record. Takes one pass over the file.

    Nothing is known if the file no longer exists, such as that of a trace read from a pipe.
    """
    return trace.source.arguments(trace, rows)


def memory_events(trace: Trace) -> list[MemoryEvents]:
    """The allocations of each device that has any; none if none were recorded."""
    return trace.source.memory_events(trace)
