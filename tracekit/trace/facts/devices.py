"""Did work run on a device of which the trace shows nothing? The calls that submit it show that, or operators that only
an accelerator has, or a read of a tensor's value that takes far longer than on a CPU, because it waits for a device.
"""

import re
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from tracekit.base.intervals import Bools, Ints
from tracekit.base.units import count, duration
from tracekit.trace.roles import OPERATOR, USER, Roles, bare
from tracekit.trace.schema import labels

if TYPE_CHECKING:
    from tracekit.trace.model import Trace

# Operators that work on an accelerator only. torch asks on a CPU, too, whether a library for GPUs would do: such
# questions (`aten::cudnn_is_acceptable`) are no work.
_ACCELERATED = re.compile(
    r"aten::_?(?:cudnn|miopen)_(?!is_|can_|has_|use_).*|aten::_(?:flash|efficient)_attention_(?:forward|backward)"
    r"|aten::_?(?:\w+_)?mps(?:_.*)?|triton_(?:poi|red|per|tem|mm)_.*|(?:mtia|hpu|npu|xla|mps|xpu)(?:::|_).*",
    re.DOTALL,
)
_COLLECTIVE = re.compile(r"(?:nccl|rccl|hccl|xccl):.*", re.DOTALL)  # annotations of libraries for accelerators
_OTHER_DEVICES = re.compile(r"(?:mtia|hpu|npu|tpu|xpu|mps)_.*")  # categories of events
_READS = re.compile(r"aten::_local_scalar_dense")  # what .item() and float() of a tensor come down to
_MIN_READ_NS = 200_000  # on average: on a CPU, reading a value takes a few µs
_MIN_SHARE_OF_READS = 0.02  # of the recording


class Submitted(Struct, frozen=True):
    """Work for a device of which the trace shows nothing: who submitted it, that in words, and which events show it."""

    function: str | None  # the call that submitted most of it
    operator: str | None  # or the operator, where no call is recorded
    description: str
    rows: Ints


def device_side_missing(trace: "Trace") -> Submitted | None:
    """Who submitted work to a device of which the trace shows nothing; None where no such work was submitted."""
    if trace.device == "gpu":
        return None
    if trace.census.any(lambda roles: roles.launch):
        rows = trace.where(lambda part: part.roles.launch)
        name = _most_frequent(trace, rows)
        description = f"{count(len(rows))} calls submitted work to the GPU, most of them {bare(name)}"
        return Submitted(bare(name), None, description, rows)
    if len(rows := of_category(trace, _OTHER_DEVICES)):
        return Submitted(None, None, "The work ran on an accelerator", rows)
    if trace.census.any(_is_accelerated):
        rows = trace.where(lambda part: _is_accelerated(part.roles))
        name = _most_frequent(trace, rows)
        description = f"{count(len(rows))} operators ran that only an accelerator has, most of them {name}"
        return Submitted(None, name, description, rows)
    reads = trace.where(lambda part: (part.roles.kind == OPERATOR) & part.roles.named(_READS))
    waited_ns, whole_ns = int(trace.dur_ns[reads].sum()), np.diff(trace.steps.window)[0]
    if len(reads) and waited_ns >= max(_MIN_READ_NS * len(reads), _MIN_SHARE_OF_READS * whole_ns):
        name = trace.names[trace.name_codes[reads[0]]]
        description = (
            f"Reading a value takes {duration(waited_ns / len(reads))} on average, as where it waits for a device"
        )
        return Submitted(None, name, description, reads)
    return None


def of_category(trace: "Trace", pattern: re.Pattern[str]) -> Ints:
    """The rows of the events whose category matches as a whole."""
    categories = [k for k, category in enumerate(labels(trace.events["cat"])) if pattern.fullmatch(category)]
    return np.flatnonzero(np.isin(trace.cat_codes, categories)) if categories else np.zeros(0, np.int64)


def _is_accelerated(roles: Roles) -> Bools:
    operators: Bools = (roles.kind < USER) & roles.named(_ACCELERATED)  # users may name annotations as they like
    return operators | ((roles.kind <= USER) & roles.named(_COLLECTIVE))


def _most_frequent(trace: "Trace", rows: Ints) -> str:
    """The most frequent name among these events."""
    return trace.names[int(np.bincount(trace.name_codes[rows]).argmax())]
