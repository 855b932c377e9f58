"""Was work submitted to a device of which the recording shows nothing?

What operators take is then what the host needs to submit it: nothing that the trace holds is the work itself.
"""

import re
from dataclasses import dataclass

import numpy as np

from tracekit.intervals import Bools
from tracekit.trace import Trace
from tracekit.trace.census import Ask
from tracekit.trace.columns import labels
from tracekit.trace.roles import OTHER_DEVICE, USER, Roles, bare
from tracekit.units import count

# Operators that work on an accelerator only. torch asks on a CPU, too, whether a library for GPUs would do: such
# questions (`aten::cudnn_is_acceptable`) are no work.
_ACCELERATED = re.compile(
    r"aten::_?(?:cudnn|miopen)_(?!is_|can_|has_|use_).*|aten::_(?:flash|efficient)_attention_(?:forward|backward)"
    r"|triton_(?:poi|red|per|tem|mm)_.*|(?:mtia|hpu|npu|xla)(?:::|_).*",
    re.DOTALL,
)
_COLLECTIVE = re.compile(r"(?:nccl|rccl|hccl):.*", re.DOTALL)  # annotations of libraries for accelerators
_OTHER_DEVICES = re.compile(r"(?:mtia|hpu|npu|tpu)_.*")  # categories of events


@dataclass(frozen=True)
class Submitted:
    """Work for a device of which the trace shows nothing: who submitted it, that in words, and which events show it."""

    function: str | None  # the call that submitted most of it
    operator: str | None  # or the operator, where no call is recorded
    said: str
    ask: Ask


def device_side_missing(trace: Trace) -> Submitted | None:
    """Who submitted work to a device of which the trace shows nothing; None where no such work was submitted."""
    if trace.device == "gpu":
        return None
    if trace.census.any(_is_launch):
        name, number = _most(trace, _is_launch)
        said = f"{count(number)} calls submitted work to the GPU, most of them {bare(name)}"
        return Submitted(bare(name), None, said, _is_launch)
    if any(map(_OTHER_DEVICES.fullmatch, labels(trace.events["cat"]))):
        return Submitted(None, None, "The work ran on an accelerator", lambda roles: roles.kind >= OTHER_DEVICE)
    if trace.census.any(_is_accelerated):
        name, number = _most(trace, _is_accelerated)
        said = f"{count(number)} operators ran that only an accelerator has, most of them {name}"
        return Submitted(None, name, said, _is_accelerated)
    return None


def _is_launch(roles: Roles) -> Bools:
    return roles.launch


def _is_accelerated(roles: Roles) -> Bools:
    operators: Bools = (roles.kind < USER) & roles.named(_ACCELERATED)  # users may name annotations as they like
    return operators | ((roles.kind <= USER) & roles.named(_COLLECTIVE))


def _most(trace: Trace, ask: Ask) -> tuple[str, int]:
    """The most frequent name among the events of a role, and how many events there are."""
    codes = trace.name_codes[trace.where(lambda part: ask(part.roles))]
    return trace.names[int(np.bincount(codes).argmax())], len(codes)
