"""If the GPU sets the pace, what kind of work does it mostly do, which kernel of that kind costs most, for which
classes of module, and in which phase of the step?
"""

import re

import numpy as np
from msgspec import Struct

from tracekit.base.intervals import Bools
from tracekit.base.units import percent
from tracekit.findings.bandwidth import bandwidth_in_words
from tracekit.findings.finding import Where
from tracekit.profile import Profile
from tracekit.profile.grouping import KernelTime, kernel_times, summed
from tracekit.trace.roles import USER
from tracekit.trace.rows import Events, enclosing
from tracekit.vocabulary.kernel_names import short_kernel

_KINDS = {
    "gpu_bound_gemm": ("matmul", "convolution"),
    "gpu_bound_other": ("attention", "recurrent", "fft", "linear algebra", "other"),
}
_NOUNS = {
    "gpu_bound_gemm": "matrix products and convolutions",
    "gpu_bound_memory_bound": "moving data",
    "gpu_bound_other": "neither matrix products nor moving data",
}
_GRAPHED = 0.5  # of the GPU activities
_WORK = ("gpu_compute", "gpu_copy")
_NUMBER = re.compile(r"_\d+$")  # of the instance: Linear_3
_MAX_NAMED_MODULES, _MIN_SHARE_OF_WORK = 2, 0.1  # modules that are named, and the least share of the work
_NAMES = ("forward and the rest", "backward", "the optimizer")
# What programs call these parts themselves: `## backward ##`, `(B) micro-batch 3`.
_BACKWARD = re.compile(r"(?:##? *)?(?:\([BW]\)|backward\b).*", re.DOTALL | re.IGNORECASE)
_OPTIMIZER = re.compile(r"(?:##? *)?(?:Optimizer\b|optim\b|zero_grad\b).*", re.DOTALL | re.IGNORECASE)
# Kernels of backward; those that Inductor fuses are named after all that is in them.
_GRADIENT = re.compile(r"(?!triton_).*(?:dgrad|wgrad|bgrad|[Bb]ackward).*", re.DOTALL)
_UNTOLD = 0.01  # of the work: where more kernels of backward seem to be forward's, phases cannot be told
_OUTSIDE_OF_PHASES = 0.5  # of the work, in graphs that no phase encloses: they may hold whole steps


class GpuBound(Struct, frozen=True):
    """Which verdict it is, what most of the GPU's work is, and the kernel that takes most of that."""

    id: str
    description: str
    location: Where


def gpu_bound(profile: Profile) -> GpuBound:
    """The verdict on a variant whose step the GPU bounds."""
    times = [kernel_time for kernel_time in kernel_times(profile) if kernel_time.label != "communication"]
    total = sum(kernel_time.step_ns for kernel_time in times)
    if not total:
        return GpuBound("gpu_bound_other", "", Where())
    kinds: dict[str, list[KernelTime]] = {}
    for kernel_time in times:
        kind = next((kind for kind, labels in _KINDS.items() if kernel_time.label in labels), "gpu_bound_memory_bound")
        kinds.setdefault(kind, []).append(kernel_time)
    name, of_kind = max(kinds.items(), key=lambda item: sum(kernel_time.step_ns for kernel_time in item[1]))
    share = sum(kernel_time.step_ns for kernel_time in of_kind) / total
    costliest, time = next(iter(summed(of_kind, "name").items()))
    made_by = summed([kernel_time for kernel_time in of_kind if kernel_time.name == costliest], "operator")
    location = Where(kernel=costliest, operator=next(iter(made_by)))
    alone = f"{percent(time / total)} is {short_kernel(costliest)} alone"
    phases = ", ".join(f"{phase} {percent(part)}" for phase, part in phase_shares(profile).items())
    largest = [*module_shares(profile).items()][:_MAX_NAMED_MODULES]
    modules = ", ".join(f"{module} {percent(part)}" for module, part in largest if part >= _MIN_SHARE_OF_WORK)
    clauses = (
        f"{percent(share)} of its work is {_NOUNS[name]}, and {alone}",
        bandwidth_in_words(profile) if name == "gpu_bound_memory_bound" else "",
        f"by phase: {phases}" if phases else "",
        f"by module: {modules}" if modules else "",
    )
    description = "; ".join(filter(None, clauses))
    return GpuBound("cuda_graph_ok_gpu_bound" if _replayed(profile) else name, description, location)


def _replayed(profile: Profile) -> bool:
    """Whether most of the work comes from CUDA graphs."""
    trace = profile.trace
    if not trace.census.count(lambda roles: roles.graph_launch):
        return False
    replayed = sum(int(trace.events_at(calls).roles.graph_launch.sum()) for _, calls in trace.links.some())
    return replayed > _GRAPHED * len(trace.links.activities)


def module_shares(profile: Profile) -> dict[str, float]:
    """The share of each class of innermost module in the GPU's work, the largest first."""
    times = profile.owner_means.by(
        "wall",
        lambda owner: _NUMBER.sub("", owner.module[-1]) if owner.module else "",
        lambda mean: mean.bucket in _WORK,
    )
    total = sum(times.values())
    shares = {name: time / total for name, time in times.items() if name and time}
    return dict(sorted(shares.items(), key=lambda item: -item[1]))


def phase_shares(profile: Profile) -> dict[str, float]:
    """The share of each in the GPU's work in counted steps; nothing where neither of the last two launches anything,
    or where what launched the work does not tell.

    Backward is what autograd launches – inside of its nodes, or in its thread – or what the program calls so. What a
    CUDA graph replays counts for the phase that launches the graph.
    """
    trace = profile.trace
    launches, activities = trace.links.launches, trace.links.activities
    counted = profile.begins_in_counted(launches)
    calls, inverse = np.unique(launches[counted].astype(np.int64), return_inverse=True)
    helpers = np.array(trace.threads.helpers, np.int64)
    in_node = enclosing(trace, calls, lambda part: part.roles.backward_node | _called(part, _BACKWARD)) >= 0
    backward = in_node | np.isin(trace.track[calls], helpers)
    optimizer = enclosing(trace, calls, lambda part: _called(part, _OPTIMIZER)) >= 0
    if not (backward | optimizer).any():
        return {}
    phase = np.where(optimizer, 2, np.where(backward, 1, 0))
    lasted, total = trace.dur_ns[activities[counted]], max(int(trace.dur_ns[activities[counted]].sum()), 1)
    forward = phase[inverse] == 0
    gradients = trace.labels.fits(_GRADIENT)[trace.name_codes[activities[counted]]]
    graphed = trace.events_at(calls).roles.graph_launch[inverse]
    if (
        lasted[forward & gradients].sum() > _UNTOLD * total
        or lasted[forward & graphed].sum() > _OUTSIDE_OF_PHASES * total
    ):
        return {}
    times = np.bincount(phase[inverse], lasted, minlength=len(_NAMES))
    return {name: float(time) for name, time in zip(_NAMES, times / total, strict=True) if time > 0}


def _called(part: Events, pattern: re.Pattern[str]) -> Bools:
    """The annotations that have such a name."""
    roles = part.roles
    called: Bools = ((roles.kind == USER) | roles.annotation) & roles.named(pattern)
    return called
