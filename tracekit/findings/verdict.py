"""What bounds the step, in one sentence: of the first finding or, where nothing is wrong, of where most time goes."""

from dataclasses import asdict, dataclass
from typing import Any

from tracekit.analyses.kernel_time import class_times
from tracekit.findings.finding import Finding
from tracekit.profile import Profile
from tracekit.trace.roles import GRAPH_LAUNCH
from tracekit.units import duration, percent

# Every verdict, and what takes the time where that is no fault.
VERDICTS = {
    "empty": "Nothing that lasts was recorded",
    "gpu_side_missing": "The GPU's side was not recorded",
    "host_side_missing": "The host's side was not recorded",
    "gpu_bound_gemm": "The GPU sets the pace, most of all matrix products and convolutions",
    "gpu_bound_memory_bound": "The GPU sets the pace, most of all kernels that move memory",
    "gpu_bound_other": "The GPU sets the pace",
    "cuda_graph_ok_gpu_bound": "The GPU sets the pace, and CUDA graphs keep it supplied",
    "launch_bound": "Submitting work to the GPU takes most of the time",
    "dispatch_bound": "Choosing what to run takes most of the time",
    "python_bound": "Python takes most of the time",
    "sync_stall": "The GPU idles most because the host waited for it",
    "dataloader_bound": "The loop waits most for its next batch",
    "h2d_pageable_copy": "Copies take most of the time",
    "exposed_comm": "Communication that nothing hides takes most of the time",
    "compile_in_steps": "Compiling takes most of the time",
    "recompiles": "Recompiling takes most of the time",
    "cold_start": "What happens only at first takes most of the time",
    "host_freeze": "The host stands still most of the time",
    "cpu_compute": "Operators compute on the CPU",
    "idle_unexplained": "The GPU idles most, and nothing recorded says why",
}
_BUCKETS = {
    "gpu": ("gpu_compute", "gpu_gap"),
    "h2d_pageable_copy": ("gpu_copy",),
    "exposed_comm": ("gpu_comm",),
    "host": ("kernel_launch", "dispatch", "python", "guards", "alloc"),
    "sync_stall": ("sync_stall", "sync"),
    "dataloader_bound": ("dataload",),
    "compile_in_steps": ("compile",),
    "cold_start": ("module_load",),
    "idle_unexplained": ("profiler",),
    "cpu_compute": ("cpu_compute",),
}
SLOW_HOST = {
    "launch_bound": ("kernel_launch",),
    "dispatch_bound": ("dispatch", "alloc"),
    "python_bound": ("python", "guards"),
}
_CLASSES = {
    "gpu_bound_gemm": ("matmul", "convolution"),
    "gpu_bound_other": ("attention", "recurrent", "fft", "linear algebra", "communication", "other"),
}
_GRAPHED = 0.5  # of the launch calls' work


@dataclass(frozen=True)
class Verdict:
    """One of `VERDICTS`, the sentence, and which share of the step it speaks of (None where no step has a length)."""

    id: str
    sentence: str
    share: float | None

    def document(self) -> dict[str, Any]:
        """As the machine-readable report has it."""
        return asdict(self)


def verdict(profile: Profile, first: Finding | None) -> Verdict:
    """The verdict of the first finding, if there is one and it is of the list; else where most of the time goes."""
    if first is not None and first.id in VERDICTS:
        return Verdict(first.id, first.title, first.share)
    parts = _parts(profile)
    total = sum(parts.values())
    if not total:
        return Verdict("empty", f"{VERDICTS['empty']}.", None)
    times = {name: _time(parts, buckets) for name, buckets in _BUCKETS.items()}
    most = max(times, key=lambda name: times[name])
    name = _on_the_gpu(profile) if most == "gpu" else slowest(parts) if most == "host" else most
    share = times[most] / total
    return Verdict(name, f"{VERDICTS[name]}: {percent(share)} of {duration(total)} a step.", share)


def slowest(parts: dict[str, float]) -> str:
    """Which of the reasons for a slow host weighs most: `launch_bound`, `dispatch_bound` or `python_bound`."""
    return max(SLOW_HOST, key=lambda name: _time(parts, SLOW_HOST[name]))


def as_finding(profile: Profile, said: Verdict, found: list[Finding]) -> Finding:
    """The verdict as the first finding, where all others are of rules beyond the list: what they leave of its time."""
    mean = profile.means["wall"] or profile.means["host"]
    step = mean.step_ns if mean is not None else 0.0
    left = max(step - sum(each.cost_ns or 0.0 for each in found), 0.0)
    cost = min((said.share or 0.0) * step, left)
    return Finding(said.id, said.sentence, cost, share=cost / step if step else None)


def _parts(profile: Profile) -> dict[str, float]:
    mean = profile.means["wall"] or profile.means["host"]
    return mean.parts if mean is not None else {}


def _time(parts: dict[str, float], buckets: tuple[str, ...]) -> float:
    return sum(parts.get(key, 0.0) for key in buckets)


def _on_the_gpu(profile: Profile) -> str:
    trace = profile.trace
    graphs = trace.census.count(lambda roles: roles.runtime & roles.named(GRAPH_LAUNCH, runtime=True))
    if graphs:
        replayed = sum(
            int(trace.rows(calls).roles.named(GRAPH_LAUNCH, runtime=True).sum()) for _, calls in trace.links.some()
        )
        if replayed > _GRAPHED * len(trace.links.activities):
            return "cuda_graph_ok_gpu_bound"
    kinds: dict[str, float] = {}
    for label, time in class_times(profile).items():
        kind = next((name for name, labels in _CLASSES.items() if label in labels), "gpu_bound_memory_bound")
        kinds[kind] = kinds.get(kind, 0.0) + time
    return max(kinds, key=lambda name: kinds[name]) if kinds else "gpu_bound_other"
