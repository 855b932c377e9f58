"""If the GPU sets the pace, what kind of work does it mostly do, and which kernel of that kind costs most?"""

from dataclasses import dataclass

from tracekit.findings import bandwidth
from tracekit.findings.finding import Where
from tracekit.findings.gpu_bound import modules, phases
from tracekit.kernel_names import short_kernel
from tracekit.profile import Profile
from tracekit.profile.kernel_time import KernelTime, kernel_times, summed
from tracekit.units import percent

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


@dataclass(frozen=True)
class GpuBound:
    """Which verdict it is, what most of the GPU's work is, and the kernel that takes most of that."""

    id: str
    description: str
    where: Where


def gpu_bound(profile: Profile) -> GpuBound:
    """The verdict on a variant whose step the GPU bounds."""
    times = [each for each in kernel_times(profile) if each.label != "communication"]
    total = sum(each.step_ns for each in times)
    if not total:
        return GpuBound("gpu_bound_other", "", Where())
    kinds: dict[str, list[KernelTime]] = {}
    for each in times:
        kinds.setdefault(_kind(each), []).append(each)
    name, of_kind = max(kinds.items(), key=lambda item: sum(each.step_ns for each in item[1]))
    share = sum(each.step_ns for each in of_kind) / total
    costliest, time = next(iter(summed(of_kind, "name").items()))
    made_by = summed([each for each in of_kind if each.name == costliest], "operator")
    where = Where(kernel=costliest, operator=next(iter(made_by)))
    alone = f"{percent(time / total)} is {short_kernel(costliest)} alone"
    description = f"{percent(share)} of its work is {_NOUNS[name]}, and {alone}"
    if name == "gpu_bound_memory_bound":
        description += _clause(bandwidth.sentence(profile))
    description += _clause(phases.sentence(profile)) + _clause(modules.sentence(profile))
    return GpuBound("cuda_graph_ok_gpu_bound" if _replayed(profile) else name, description, where)


def _clause(said: str) -> str:
    return f"; {said}" if said else ""


def _kind(each: KernelTime) -> str:
    return next((kind for kind, labels in _KINDS.items() if each.label in labels), "gpu_bound_memory_bound")


def _replayed(profile: Profile) -> bool:
    """Whether most of the work comes from CUDA graphs."""
    trace = profile.trace
    if not trace.census.count(lambda roles: roles.graph_launch):
        return False
    replayed = sum(int(trace.events_at(calls).roles.graph_launch.sum()) for _, calls in trace.links.some())
    return replayed > _GRAPHED * len(trace.links.activities)
