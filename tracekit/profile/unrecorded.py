"""What does a recording not show: work that was submitted to a device that was not recorded, and the time at either end
of which it is unknown what the GPU did?
"""

import re
from dataclasses import dataclass

import numpy as np

from tracekit import event_names
from tracekit.engine.wall import SUBMISSION_NS
from tracekit.intervals import Bools, Union
from tracekit.profile.profile import Profile
from tracekit.profile.recording_words import has_steps
from tracekit.trace import Trace
from tracekit.trace.census import Ask
from tracekit.trace.columns import labels
from tracekit.trace.roles import OTHER_DEVICE, USER, Roles, bare
from tracekit.trace.rows import AFTER, BEFORE
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
    description: str
    ask: Ask


def device_side_missing(trace: Trace) -> Submitted | None:
    """Who submitted work to a device of which the trace shows nothing; None where no such work was submitted."""
    if trace.device == "gpu":
        return None
    if trace.census.any(_is_launch):
        name, number = _most_frequent(trace, _is_launch)
        description = f"{count(number)} calls submitted work to the GPU, most of them {bare(name)}"
        return Submitted(bare(name), None, description, _is_launch)
    if any(map(_OTHER_DEVICES.fullmatch, labels(trace.events["cat"]))):
        return Submitted(None, None, "The work ran on an accelerator", lambda roles: roles.kind >= OTHER_DEVICE)
    if trace.census.any(_is_accelerated):
        name, number = _most_frequent(trace, _is_accelerated)
        description = f"{count(number)} operators ran that only an accelerator has, most of them {name}"
        return Submitted(None, name, description, _is_accelerated)
    return None


def _is_launch(roles: Roles) -> Bools:
    return roles.launch


def _is_accelerated(roles: Roles) -> Bools:
    operators: Bools = (roles.kind < USER) & roles.named(_ACCELERATED)  # users may name annotations as they like
    return operators | ((roles.kind <= USER) & roles.named(_COLLECTIVE))


def _most_frequent(trace: Trace, ask: Ask) -> tuple[str, int]:
    """The most frequent name among the events of a role, and how many events there are."""
    codes = trace.name_codes[trace.where(lambda part: ask(part.roles))]
    return trace.names[int(np.bincount(codes).argmax())], len(codes)


_KERNELS = event_names.call(event_names.KERNEL_LAUNCH)


def unseen(profile: Profile) -> Union:
    """That time inside the answered steps; none in a trace whose wall time is unknown."""
    trace, view = profile.trace, profile.views["wall"]
    activities = trace.where(lambda part: part.roles.gpu & part.lasting) if trace.device == "gpu" else np.zeros(0, int)
    if not len(activities) or not view.known.any():
        return Union.of(np.zeros(0, np.int64), np.zeros(0, np.int64))
    first, last = int(trace.ts_ns[activities[0]]), int(trace.events_at(activities).end_ns.max())
    calls = trace.where(lambda part: part.roles.launch & part.process & part.roles.named(_KERNELS))
    calls = calls[~np.isin(trace.correlation[calls], (0, -1))]  # these link nothing
    lost = trace.ts_ns[calls[trace.links.submitted(calls)[1] == 0]]
    without_steps, launches = not has_steps(profile), trace.links.launches
    of_first = trace.links.launch(activities[:1])
    late = bool(of_first[0] >= 0) and first - int(trace.events_at(of_first).end_ns[0]) > 2 * SUBMISSION_NS
    before = without_steps or late or bool((lost < first).any())
    after = without_steps or bool((lost > trace.ts_ns[launches].max(initial=BEFORE)).any())
    is_known = view.known & (view.step_ns > 0)
    steps = Union.of(view.starts_ns[is_known], (view.starts_ns + view.step_ns)[is_known])
    return steps.minus(Union.of(np.array([first if before else BEFORE]), np.array([last if after else AFTER])))
