"""What bounds the step, in one sentence: the first finding or, if nothing is wrong, what takes most of the time. Where
that is the GPU: what kind of work it mostly does, which kernel of that kind costs most, for which classes of module,
and in which phase of the step.
"""

import re
from typing import Any

import numpy as np
from msgspec import Struct, field

from tracekit.base.intervals import Bools, Union
from tracekit.base.units import duration, many, percent
from tracekit.engine.buckets import BOUNDS, ON_THE_GPU, Bound, by_bound
from tracekit.findings.bandwidth import bandwidth_in_words
from tracekit.findings.belief import why_unknown
from tracekit.findings.counted import Steps
from tracekit.findings.finding import Finding, Where, as_clause, blamed_events, evidence
from tracekit.findings.kernels import kernels, queue_waits, with_name
from tracekit.findings.ranking import worth_telling
from tracekit.findings.saving import savings
from tracekit.findings.verdict_pages import VERDICTS
from tracekit.profile import Profile
from tracekit.profile.grouping import KernelTime, kernel_times, summed
from tracekit.trace.roles import USER
from tracekit.trace.rows import Events, enclosing
from tracekit.vocabulary.kernel_names import kernel_in_prose

# The verdict on each bound; `gpu` and `host` stand for several, of which `gpu_bound` and `slowest` choose one.
_VERDICT_ON: dict[Bound, str] = {
    "gpu": "gpu",
    "copies": "gpu",
    "gaps": "queued_not_started",  # but short ones are the GPU's own pace: see `verdict`
    "communication": "exposed_comm",
    "host": "host",
    "syncs": "sync_stall",
    "data": "dataloader_bound",
    "compiling": "compile_in_steps",
    "code loading": "cold_start",
    "profiler": "idle_unexplained",
    "cpu": "cpu_compute",
    "unrecorded": "too_little_recorded",
}
_MAIN_SHARE = 0.5  # of the time that a verdict is about: where less is saved, its advice says so
_MIN_SHARE_TO_REPORT = 0.01  # of a step: shorter parts of it are not mentioned
MIN_KNOWN_SHARE = 0.5  # of a step: where less of it is known, nothing is said of the step
# A recording with fewer events than that and less time is no sample of steps; and neither is one of next to no time.
_MIN_EVENTS, _MIN_RECORDED_NS, _MIN_NS_OF_MANY = 20, 1_000_000, 100_000
HOST_BOUND = {  # the verdicts on a slow host, and the buckets that each of them is about
    "launch_bound": ("kernel_launch",),
    "dispatch_bound": ("dispatch", "alloc"),
    "python_bound": ("python", "guards"),
}
_WORK_KINDS = {
    "gpu_bound_gemm": ("matmul", "convolution"),
    "gpu_bound_other": ("attention", "recurrent", "fft", "linear algebra", "other"),
}
_WORK_NOUNS = {
    "gpu_bound_gemm": "matrix products and convolutions",
    "gpu_bound_memory_bound": "moving data",
    "gpu_bound_other": "neither matrix products nor moving data",
}
_GRAPHED = 0.5  # of the GPU activities
_WORK = ("gpu_compute", "gpu_copy")
_NUMBER = re.compile(r"_\d+$")  # of the instance: Linear_3
_MAX_NAMED_MODULES, _MIN_SHARE_OF_WORK = 2, 0.1  # modules that are named, and the least share of the work
_PHASES = ("forward and the rest", "backward", "the optimizer")
# What programs call these parts themselves: `## backward ##`, `(B) micro-batch 3`.
_BACKWARD = re.compile(r"(?:##? *)?(?:\([BW]\)|backward\b).*", re.DOTALL | re.IGNORECASE)
_OPTIMIZER = re.compile(r"(?:##? *)?(?:Optimizer\b|optim\b|zero_grad\b).*", re.DOTALL | re.IGNORECASE)
# Kernels of backward; those that Inductor fuses are named after all that is in them.
_GRADIENT = re.compile(r"(?!triton_).*(?:dgrad|wgrad|bgrad|[Bb]ackward).*", re.DOTALL)
_UNTOLD = 0.01  # of the work: where more kernels of backward seem to be forward's, phases cannot be told
_OUTSIDE_OF_PHASES = 0.5  # of the work, in graphs that no phase encloses: they may hold whole steps


class Verdict(Struct, frozen=True):
    """One of `VERDICTS`, the sentence, and the share of the step that it is about (None where no step has a length).

    Where the GPU sets the pace, that is its work and the short gaps between queued kernels.
    """

    id: str
    sentence: str
    share: float | None
    where: Where = field(default_factory=Where)

    @property
    def headline(self) -> str:
        """What bounds the step, without figures or full stop."""
        return self.sentence.partition(": ")[0].rstrip(".")

    @property
    def why(self) -> str:
        """The figures behind it, as a sentence; may be empty."""
        figures = self.sentence.partition(": ")[2]
        is_name = "::" in figures.partition(" ")[0]  # of an operator, which keeps its letters
        return figures if is_name else f"{figures[:1].upper()}{figures[1:]}"

    def document(self) -> dict[str, Any]:
        """The verdict as the JSON report has it."""
        return {"id": self.id, "sentence": self.sentence, "share": self.share}


def verdict(profile: Profile) -> Verdict:
    """The verdict on a profile: the bucket or cause that most of a step goes to, whether or not that is a problem."""
    if (breach := why_unknown(profile)) is not None:
        return Verdict("unknown", f"{VERDICTS['unknown']}: {as_clause(breach.message)}", None)
    parts, left_out = _judged(profile)
    total = sum(parts.values())
    if not total:
        if profile.trace.cut_short:
            return Verdict("empty", "The file was cut short: what bounds a step is unknown.", None)
        return Verdict("empty", f"{VERDICTS['empty']}.", None)
    if too_little := sliver(profile) or mostly_unknown(profile):
        return Verdict("too_little_recorded", f"{VERDICTS['too_little_recorded']}: {too_little}.", None)
    times = dict.fromkeys(_VERDICT_ON.values(), 0.0)
    for bound, time in by_bound(parts).items():
        times[_VERDICT_ON[bound]] += time
    busy, gaps = times["gpu"], 0.0
    if times["queued_not_started"]:
        gaps = times["queued_not_started"] - queue_waits(profile).step_ns
        times["queued_not_started"] -= gaps
        times["gpu"] += gaps
    largest = max(times, key=lambda name: times[name])
    share = times[largest] / total
    if largest == "gpu":
        work = gpu_bound(profile)
        clause = f"{percent(busy / total)} of {duration(total)} a step{left_out}"
        clause += (
            f", and gaps between queued kernels another {percent(gaps / total)}"
            if gaps >= _MIN_SHARE_TO_REPORT * total
            else ""
        )
        sentence = f"{VERDICTS[work.id]}: {clause}{'; ' if work.description else ''}{work.description}."
        return Verdict(work.id, sentence, share, work.location)
    clause = f"{percent(share)} of {duration(total)} a step{left_out}"
    name = slowest(parts) if largest == "host" else largest
    if name == "too_little_recorded":
        return Verdict(name, f"{VERDICTS[name]}: of {clause}, nothing was recorded.", None)
    return Verdict(name, f"{VERDICTS[name]}: {clause}.", share)


def sliver(profile: Profile) -> str:
    """Why a recording is too small to say anything of a step, as a clause; empty if it is not."""
    recorded_ns = sum(profile.parts.values()) * profile.counted_steps
    events = profile.trace.census.count(lambda roles: roles.host | roles.gpu)
    is_short = recorded_ns < (_MIN_RECORDED_NS if events < _MIN_EVENTS else _MIN_NS_OF_MANY)
    return f"{many(events, 'event')} in {duration(recorded_ns)}" if recorded_ns > 0 and is_short else ""


def mostly_unknown(profile: Profile) -> str:
    """Why less than half of a step is known, as a clause; empty where more is."""
    parts, step_ns = _judged(profile)[0], sum(profile.parts.values())
    known_ns = sum(parts.values()) - parts.get("unrecorded", 0.0)
    if known_ns >= MIN_KNOWN_SHARE * step_ns:
        return ""
    unknown_part = "what happened" if parts.get("unrecorded") else "what the GPU did"
    return f"{unknown_part} is known for {duration(known_ns)} of {duration(step_ns)} a step"


def _judged(profile: Profile) -> tuple[dict[str, float], str]:
    """The known parts of a step; and in words how much of it they leave out."""
    if profile.unknown_ns < _MIN_SHARE_TO_REPORT * sum(profile.parts.values()):
        return profile.known_parts, ""
    return profile.known_parts, f", without {duration(profile.unknown_ns)} in which the GPU's side is unknown"


def of_the_gpu(name: str) -> bool:
    """Whether the verdict of that id says that the GPU's work sets the pace."""
    return name.startswith("gpu_bound") or name == "cuda_graph_ok_gpu_bound"


def slowest(parts: dict[str, float]) -> str:
    """Which of the reasons for a slow host weighs most: `launch_bound`, `dispatch_bound` or `python_bound`."""
    return max(HOST_BOUND, key=lambda name: sum(parts.get(key, 0.0) for key in HOST_BOUND[name]))


def as_finding(profile: Profile, usual: Verdict, findings: list[Finding]) -> Finding:
    """The verdict as a finding, whose cost is what a step would save without the time that it is about, but never more
    than other findings leave."""
    pieces, steps = profile.attribution.pieces, Steps.calibrated(profile)
    keys = HOST_BOUND.get(usual.id, ())
    keys += tuple(key for bound, name in _VERDICT_ON.items() if name == usual.id for key in BOUNDS[bound])
    if of_the_gpu(usual.id):
        keys = (*BOUNDS["gpu"], *BOUNDS["copies"])  # less work makes no gap between two kernels shorter
    claim = pieces.union(pieces.of(*keys))
    saving, claimed = savings(profile, steps).of(claim), steps.mean(claim)
    # What is saved of other findings' costs where the time claimed is gone.
    counted_ns = sum(
        finding.cost_ns * finding.claim.common(claim).total() / max(finding.claim.total(), 1)
        for finding in findings
        if worth_telling(finding) and finding.claim is not None and not finding.once and finding.cost_ns
    )
    remaining_ns = min(
        steps.length - sum(finding.cost_ns or 0.0 for finding in findings if not finding.once),
        saving.step_ns - counted_ns,
    )
    why = usual.why
    advice = _making_cheaper(profile, usual, claim, findings)
    if saving.bound == "host" and saving.step_ns < _MAIN_SHARE * claimed:
        if any(finding.id in HOST_BOUND and (finding.cost_ns or 0.0) > saving.step_ns for finding in findings):
            advice = "Make the host faster first: it needs the rest of the time, too."
        else:
            advice += " After that, the host has to become faster, too."
    if remaining_ns < saving.step_ns:
        why += " Its cost leaves out what other findings already count."
    cost = max(min(saving.step_ns, remaining_ns), 0.0)
    of_kernel = with_name(profile, lambda name: name == usual.where.kernel)
    rows = kernels(profile, of_kernel) if usual.where.kernel else blamed_events(profile, pieces.of(*keys))
    return Finding(
        usual.id,
        usual.headline,
        cost,
        advice,
        why,
        share=cost / steps.length if steps.length else None,
        where=usual.where,
        evidence=evidence(profile, rows),
        claimed_ns=claimed,
        rest=remaining_ns < saving.step_ns,
        unprofiled=steps.unprofiled,
        then_bound_by=saving.bound,
    )


def _making_cheaper(profile: Profile, usual: Verdict, claim: Union, findings: list[Finding]) -> str:
    if not of_the_gpu(usual.id) or usual.where.kernel is None:
        return "Do less of this, or make it cheaper."
    pieces = profile.attribution.pieces
    work = pieces.union(pieces.of(*ON_THE_GPU)).common(claim)
    if any(
        finding.claim is not None and not finding.once and finding.claim.common(work).total() for finding in findings
    ):
        return (
            "Begin with the other findings about the GPU's work, which say what of it can be saved; beyond that, only "
            "fewer or smaller operations make the step shorter."
        )
    largest = f"{kernel_in_prose(usual.where.kernel)}{usual.where.at}"
    return f"Make the GPU's work cheaper, beginning with {largest}: fewer or smaller operations."


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
        kind = next(
            (kind for kind, labels in _WORK_KINDS.items() if kernel_time.label in labels), "gpu_bound_memory_bound"
        )
        kinds.setdefault(kind, []).append(kernel_time)
    name, of_kind = max(kinds.items(), key=lambda item: sum(kernel_time.step_ns for kernel_time in item[1]))
    share = sum(kernel_time.step_ns for kernel_time in of_kind) / total
    costliest, time = next(iter(summed(of_kind, "name").items()))
    made_by = summed([kernel_time for kernel_time in of_kind if kernel_time.name == costliest], "operator")
    location = Where(kernel=costliest, operator=next(iter(made_by)))
    alone = f"{percent(time / total)} is {kernel_in_prose(costliest)} alone"
    phases = ", ".join(f"{phase} {percent(part)}" for phase, part in phase_shares(profile).items())
    largest = [*module_shares(profile).items()][:_MAX_NAMED_MODULES]
    modules = ", ".join(f"{module} {percent(part)}" for module, part in largest if part >= _MIN_SHARE_OF_WORK)
    clauses = (
        f"{percent(share)} of its work is {_WORK_NOUNS[name]}, and {alone}",
        bandwidth_in_words(profile) if name == "gpu_bound_memory_bound" else "",
        f"by phase: {phases}" if phases else "",
        f"by module: {modules}" if modules else "",
    )
    description = "; ".join(filter(None, clauses))
    trace, replayed = profile.trace, 0
    if trace.census.count(lambda roles: roles.graph_launch):
        replayed = sum(int(trace.events_at(calls).roles.graph_launch.sum()) for _, calls in trace.links.some())
    is_replayed = replayed > _GRAPHED * len(trace.links.activities)
    return GpuBound("cuda_graph_ok_gpu_bound" if is_replayed else name, description, location)


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
    times = np.bincount(phase[inverse], lasted, minlength=len(_PHASES))
    return {name: float(time) for name, time in zip(_PHASES, times / total, strict=True) if time > 0}


def _called(part: Events, pattern: re.Pattern[str]) -> Bools:
    """The annotations that have such a name."""
    roles = part.roles
    called: Bools = ((roles.kind == USER) | roles.annotation) & roles.named(pattern)
    return called
