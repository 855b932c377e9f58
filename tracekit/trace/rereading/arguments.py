"""What the profiler wrote about some events besides their times: the shapes of inputs, how full the GPU was.

It is read separately and on request, because few questions need it, and only for a few events.
"""

from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np

from tracekit.intervals import Ints
from tracekit.trace.model import Trace
from tracekit.trace.reading import exact
from tracekit.trace.reading.event import NOTHING, value_of
from tracekit.trace.rereading.again import events_again

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
        decoded = value_of(self.dims)
        return [*_flat(decoded)] if isinstance(decoded, list) else None

    @property
    def strides(self) -> Inputs | None:
        """The strides of the inputs, in the form of `inputs`."""
        decoded = value_of(self.steps)
        return [*_flat(decoded)] if isinstance(decoded, list) else None

    @property
    def types(self) -> list[str]:
        """The type of each input: `float`, `c10::BFloat16`, `ScalarList`, ""."""
        decoded = value_of(self.kinds)
        return [str(each) for each in decoded] if isinstance(decoded, list) else []

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


class _Event(msgspec.Struct, gc=False):
    name: msgspec.Raw = NOTHING
    ts: msgspec.Raw = NOTHING
    args: Arguments | None = None


_EVENTS = msgspec.json.Decoder(list[_Event])


def arguments(trace: Trace, rows: Ints) -> dict[int, Arguments]:
    """What was recorded about these events, by row, without events that have no record. Takes one pass over the file.

    Nothing is known if the file no longer exists, such as that of a trace read from a pipe.
    """
    wanted = {(int(trace.ts_ns[row]), trace.names[trace.name_codes[row]]): row for row in np.unique(rows).tolist()}
    times = np.unique(trace.ts_ns[rows])
    known: dict[int, Arguments] = {}
    left = len(wanted)
    for events in events_again(trace.path, _EVENTS, _beginnings(times)):
        starts, is_time = exact.from_texts([each.ts for each in events])
        for k in np.flatnonzero(is_time & np.isin(starts, times)).tolist():
            row = wanted.pop((int(starts[k]), str(value_of(events[k].name))), None)
            if row is not None and (args := events[k].args) is not None:
                known[row] = args
        if len(wanted) == 0 < left:
            break
    return known


def _beginnings(times: Ints) -> list[bytes]:
    """The possible first characters of a start, as text; a chunk that contains none of them need not be decoded."""
    if not len(times) or times[0] < 1000:
        return [b""]
    first, last = int(times[0]) // 1000 - 1, int(times[-1]) // 1000 + 1  # whole µs, as they are written
    dropped = len(str(last - first))
    if len(str(first)) != len(str(last)) or len(str(first)) <= dropped:
        return [b""]
    return [str(each).encode() for each in range(first // 10**dropped, last // 10**dropped + 1)]


def _flat(nested: list[Any]) -> Iterator[tuple[int, ...]]:
    for each in nested:
        if isinstance(each, list) and any(isinstance(inner, list) for inner in each):
            yield from _flat(each)
        elif isinstance(each, list) and all(isinstance(length, int) for length in each):
            yield tuple(each)
        else:
            yield ()
