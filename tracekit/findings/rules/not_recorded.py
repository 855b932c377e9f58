"""Is a whole side of the work missing from the recording?"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tracekit.findings import Finding, Where, evidence, rule
from tracekit.intervals import Bools
from tracekit.profile import Profile
from tracekit.trace import Trace
from tracekit.trace.census import Ask
from tracekit.trace.columns import labels
from tracekit.trace.roles import OTHER_DEVICE, USER, Roles, bare
from tracekit.units import count

_LINK = "https://docs.pytorch.org/docs/stable/profiler.html#torch.profiler.profile"
# Operators that work on an accelerator only. torch asks on a CPU, too, whether a library for GPUs would do: such
# questions (`aten::cudnn_is_acceptable`) are no work.
_ACCELERATED = re.compile(
    r"aten::_?(?:cudnn|miopen)_(?!is_|can_|has_|use_).*|aten::_(?:flash|efficient)_attention_(?:forward|backward)"
    r"|triton_(?:poi|red|per|tem|mm)_.*|(?:mtia|hpu|npu|xla)(?:::|_).*",
    re.DOTALL,
)
_COLLECTIVE = re.compile(r"(?:nccl|rccl|hccl):.*", re.DOTALL)  # annotations of libraries for accelerators
_OTHER_DEVICES = re.compile(r"(?:mtia|hpu|npu|tpu)_.*")  # categories of events


@rule("not_recorded")
def not_recorded(profile: Profile) -> Iterator[Finding]:
    """`empty`, `host_side_missing` or `gpu_side_missing`: they have no cost, and cast doubt on everything else."""
    trace = profile.trace
    if not trace.census.any(lambda roles: roles.host | roles.gpu) or not len(trace.steps):
        yield Finding(
            "empty",
            "The trace is empty: no event has a duration",
            do="Check that the profiler was recording while the steps ran: its schedule may still have been waiting.",
            link=_LINK,
        )
    elif trace.device == "gpu" and not _submits(trace):
        calls = "no call" if trace.threads.main is None else "no call of the training process"
        yield Finding(
            "host_side_missing",
            "The host side is missing: nothing says who submitted GPU work",
            why=f"The trace holds GPU work, but {calls} that submitted it.",
            do="Record the training process with ProfilerActivity.CPU, too, and write the traces of different "
            "processes to different files: without the calls of that process it cannot be known why the GPU idles.",
            evidence=evidence(profile, trace.where(lambda part: part.roles.gpu)),
            link=_LINK,
        )
    elif (submitted := device_side_missing(trace)) is not None:
        yield Finding(
            "gpu_side_missing",
            "The GPU side is missing: the device was not recorded",
            why=f"{submitted.said}, but the trace shows nothing of what came of it.",
            do="Record with ProfilerActivity.CUDA (or the activity of your device), and let the profiler warm up "
            "for a step. Until then it cannot be known what the device did, or whether it idled.",
            where=submitted.by,
            evidence=evidence(profile, trace.where(lambda part: submitted.ask(part.roles))),
            link=_LINK,
        )


def _submits(trace: Trace) -> bool:
    """Whether the process that trains makes any runtime call."""
    census = trace.census
    return bool((census.roles.runtime & trace.threads.process[census.track]).any())


@dataclass(frozen=True)
class Submitted:
    """Work for a device of which the trace shows nothing: who submitted it, that in words, and which events show it."""

    by: Where
    said: str
    ask: Ask


def device_side_missing(trace: Trace) -> Submitted | None:
    """Who submitted work to a device of which the trace shows nothing; None where no such work was submitted."""
    if trace.device == "gpu":
        return None
    if trace.census.any(_is_launch):
        name, number = _most(trace, _is_launch)
        said = f"{count(number)} calls submitted work to the GPU, most of them {bare(name)}"
        return Submitted(Where(function=bare(name)), said, _is_launch)
    if any(map(_OTHER_DEVICES.fullmatch, labels(trace.events["cat"]))):
        return Submitted(Where(), "The work ran on an accelerator", lambda roles: roles.kind >= OTHER_DEVICE)
    if trace.census.any(_is_accelerated):
        name, number = _most(trace, _is_accelerated)
        said = f"{count(number)} operators ran that only an accelerator has, most of them {name}"
        return Submitted(Where(operator=name), said, _is_accelerated)
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
