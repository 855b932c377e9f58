"""How many bytes do elementwise kernels move, by the shapes that were recorded, and how much of the memory's bandwidth
do large ones achieve? Each input and the output count once. Data that fits into a cache moves faster than memory
allows, so only larger work says anything about memory.
"""

import logging
import math
from functools import lru_cache

import numpy as np
from msgspec import Raw, Struct
from numpy.typing import NDArray

from tracekit.base.intervals import Bools, Ints
from tracekit.base.units import percent, size
from tracekit.findings.kernels import of_classes
from tracekit.profile import Profile
from tracekit.profile.memory_bandwidth import memory_bandwidth
from tracekit.trace.reading.event_details import BYTES_OF_TYPE
from tracekit.trace.rereading import Arguments

ELEMENTWISE = ("elementwise", "random")
_COMPARES = ("eq", "ne", "lt", "le", "gt", "ge", "isnan", "isinf", "isfinite", "logical_")  # the result is boolean
_OF_ONE = (
    "abs", "clamp_max", "clamp_min", "cos", "erf", "exp", "gelu", "log", "neg", "reciprocal", "relu", "rsqrt",
    "sigmoid", "silu", "sin", "sqrt", "square", "tanh",
)  # fmt: skip
_OF_TWO = ("add", "atan2", "div", "maximum", "minimum", "mul", "pow", "sub", *_COMPARES[:6])
_ONLY_WRITES = ("aten::fill_", "aten::zero_", "aten::copy_", "aten::bernoulli_", "aten::uniform_", "aten::normal_")
_BYTES_BEYOND_CACHES = 128 << 20  # bytes: half of them, an input, are more than the caches of most GPUs hold
_IMPOSSIBLE = 1.02  # of the peak: times are rounded
_LOG = logging.getLogger("tracekit")


class Traffic(Struct, frozen=True):
    """What one operator reads and writes, bytes."""

    read: int
    written: int

    @property
    def bytes(self) -> int:
        """Both together."""
        return self.read + self.written


def traffic(operator: str, arguments: Arguments) -> Traffic | None:
    """The traffic of an elementwise operator; None where the shapes or types of its inputs are not known."""
    return _traffic(operator, bytes(arguments.dims), bytes(arguments.kinds), bytes(arguments.steps))


@lru_cache(maxsize=1 << 14)  # the same few inputs recur
def _traffic(operator: str, dims: bytes, kinds: bytes, steps: bytes) -> Traffic | None:
    arguments = Arguments(Raw(dims), Raw(kinds), Raw(steps))
    inputs, types, strides = arguments.inputs, arguments.types, arguments.strides
    if inputs is None or len(inputs) != len(types):
        return None
    if strides is None or len(strides) != len(inputs):
        strides = inputs  # any values will do: only a stride of 0 matters
    sizes = [BYTES_OF_TYPE.get(kind) for kind in types]
    tensors = [k for k, size in enumerate(sizes) if size is not None and inputs[k]]
    if not tensors or any(kind.startswith("TensorList") for kind in types):
        return None
    # What an expanded tensor repeats is stored once.
    stored = (
        [length for length, step in zip(inputs[k], strides[k], strict=True) if step]
        if len(inputs[k]) == len(strides[k])
        else inputs[k]
        for k in tensors
    )
    read = [math.prod(dims) * (sizes[k] or 0) for k, dims in zip(tensors, stored, strict=True)]
    if _has_output(operator, tensors):
        return Traffic(sum(read[:-1]), read[-1])
    if operator in _ONLY_WRITES:
        return Traffic(sum(read[1:]), read[0])
    if operator.endswith("_"):
        return Traffic(sum(read), read[0])
    try:
        shape = np.broadcast_shapes(*(inputs[k] for k in tensors))
    except ValueError:
        return None
    compares = operator.removeprefix("aten::").startswith(_COMPARES)
    size = 1 if compares else max(sizes[k] or 0 for k in tensors)
    return Traffic(sum(read), math.prod(shape) * size)


def _has_output(operator: str, tensors: list[int]) -> bool:
    """Whether the last tensor is the `out` argument: it follows a number, or is one more than the operator reads."""
    name = operator.removeprefix("aten::")
    if name != "where" and len(tensors) > 1 and tensors[-1] > tensors[-2] + 1:
        return True
    return len(tensors) > (1 if name in _OF_ONE else 2 if name in _OF_TWO else math.inf)


class Moved(Struct, frozen=True):
    """The elementwise kernels of one step whose shapes are known."""

    rows: Ints
    bytes: Ints  # read and written by each
    written: Ints


def moved(profile: Profile) -> Moved:
    """The kernels of the step whose shapes are looked up; those that share an operator are left out."""
    trace, sample = profile.trace, profile.sample
    _, inverse, shared = np.unique(sample.operators, return_inverse=True, return_counts=True)
    alone: Bools = (sample.operators >= 0) & (shared[inverse] == 1)
    alone[alone] = of_classes(profile, sample.kernels[alone], ELEMENTWISE)
    of_each: list[tuple[int, int, int]] = []
    for row, operator in zip(sample.kernels[alone].tolist(), sample.operators[alone].tolist(), strict=True):
        name, arguments = trace.name(operator), sample.arguments.get(operator)
        if arguments is None or not name.startswith("aten::"):
            continue
        if (volume := traffic(name, arguments)) is not None:
            of_each.append((row, volume.bytes, volume.written))
    return Moved(*np.array(of_each, np.int64).reshape(-1, 3).T)


class Achieved(Struct, frozen=True):
    """The large elementwise kernels of one step whose shapes are known, and the memory bandwidth of the GPU."""

    rows: Ints
    bytes: Ints
    per_second: NDArray[np.float64]
    device: str | None  # None where its bandwidth is not known
    peak: float | None  # bytes a second


def achieved(profile: Profile) -> Achieved | None:
    """The bandwidth that such kernels achieve; None if none is large enough, or no shapes were recorded."""
    work = moved(profile)
    large = work.bytes >= _BYTES_BEYOND_CACHES
    rows, sizes = work.rows[large], work.bytes[large]
    if not len(rows):
        return None
    device, peak = memory_bandwidth(profile.trace) or (None, None)
    rates = sizes / profile.trace.dur_ns[rows] * 1e9
    wrong = rates > _IMPOSSIBLE * (peak or math.inf)
    if wrong.any():
        name = profile.trace.names[profile.trace.name_codes[rows[wrong][0]]]
        _LOG.warning("%s: too many bytes are counted, for more than %s has moves them: %s", profile.name, device, name)
    right = ~wrong
    return Achieved(rows[right], sizes[right], rates[right], device, peak) if right.any() else None


def bandwidth_in_words(profile: Profile) -> str:
    """In words: what large elementwise kernels move, as a share of the GPU's memory bandwidth where that is known."""
    reached = achieved(profile)
    if reached is None:
        return ""
    rate = float(reached.bytes.sum() / profile.trace.dur_ns[reached.rows].sum()) * 1e9
    clause = f"large elementwise kernels move {size(rate)}/s"
    if reached.peak is None:
        return f"{clause}; the memory bandwidth of this GPU is not known"
    return f"{clause}, {percent(rate / reached.peak)} of the memory bandwidth of {reached.device}"
