"""Is a whole side of the work missing from the recording?"""

import re
from collections.abc import Iterator

import numpy as np

from tracekit.findings import Finding, Where, rule
from tracekit.profile import Profile
from tracekit.trace import Trace
from tracekit.trace.census import Ask
from tracekit.trace.columns import labels
from tracekit.trace.roles import USER, bare
from tracekit.units import count

_LINK = "https://docs.pytorch.org/docs/stable/profiler.html#torch.profiler.profile"
# Operators that only an accelerator has: whoever runs them has one.
_ACCELERATED = re.compile(
    r"aten::_?(?:cudnn|miopen)_.*|aten::_(?:flash|efficient)_attention_(?:forward|backward)|triton_(?:poi|red|per|tem|mm)_.*"
    r"|(?:nccl|rccl|hccl):.*|(?:mtia|hpu|npu|xla)(?:::|_).*",
    re.DOTALL,
)
_OTHER_DEVICES = re.compile(r"(?:mtia|hpu|npu|tpu)_.*")  # categories of events


@rule("not_recorded")
def not_recorded(profile: Profile) -> Iterator[Finding]:
    """`empty`, `host_side_missing` or `gpu_side_missing`: they have no cost, and make all else doubtful."""
    trace = profile.trace
    if not trace.census.any(lambda roles: roles.host | roles.gpu) or not len(trace.steps):
        yield Finding(
            "empty",
            "The trace holds no event that lasts",
            advice="Check that the profiler ran while the steps did: its schedule may have been still waiting.",
            link=_LINK,
        )
    elif trace.device == "gpu" and not _submits(trace):
        whose = "who submitted it" if trace.threads.main is None else "the process that trains submitting it"
        yield Finding(
            "host_side_missing",
            f"The trace holds GPU work and nothing of {whose}",
            advice="Record the process that trains, with ProfilerActivity.CPU as well, and keep traces of several "
            "processes apart: without its calls nobody can say why the GPU idles.",
            link=_LINK,
        )
    elif (submitted := device_side_missing(trace)) is not None:
        yield Finding(
            "gpu_side_missing",
            f"{submitted[1]}, and the trace shows nothing of what the device did",
            advice="Record with ProfilerActivity.CUDA (or that of your device), and warm the profiler up for a step: "
            "what the device did, and whether it idled, cannot be told.",
            where=submitted[0],
            link=_LINK,
        )


def _submits(trace: Trace) -> bool:
    """Whether the process that trains makes any runtime call."""
    census = trace.census
    return bool((census.roles.runtime & trace.threads.process[census.track]).any())


def device_side_missing(trace: Trace) -> tuple[Where, str] | None:
    """Who submitted work to a device of which the trace shows nothing, and that in words; None where nobody did."""
    if trace.device == "gpu":
        return None
    if (call := _most(trace, lambda roles: roles.launch)) is not None:
        told = f"{count(call[1])} calls submitted work to the GPU, most of them {bare(call[0])}"
        return Where(function=bare(call[0])), told
    if any(map(_OTHER_DEVICES.fullmatch, labels(trace.events["cat"]))):
        return Where(), "The work ran on an accelerator"
    operator = _most(trace, lambda roles: (roles.kind <= USER) & roles.named(_ACCELERATED))
    if operator is not None:
        told = f"{count(operator[1])} operators ran that only an accelerator has, most of them {operator[0]}"
        return Where(operator=operator[0]), told
    return None


def _most(trace: Trace, ask: Ask) -> tuple[str, int] | None:
    """Of the events that have a role the name that most of them bear, and how many there are; None where none has."""
    if not trace.census.any(ask):
        return None
    counts = np.zeros(len(trace.names), np.int64)
    for part in trace.parts():
        counts += np.bincount(part.name_codes[ask(part.roles)], minlength=len(counts))
    return trace.names[int(counts.argmax())], int(counts.sum())
