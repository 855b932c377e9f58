"""Does the GPU idle because the host submits its work too slowly?"""

import re
from collections.abc import Iterator

import numpy as np

from tracekit.base.intervals import Bools, Ints, distinct
from tracekit.base.units import count, duration, many, ratio
from tracekit.engine.buckets import BUCKETS, ON_THE_GPU, SUBMITTING
from tracekit.findings import Finding, Where, blamed_events, evidence, one_by_one, rule
from tracekit.findings.compiler_advice import graphs_recorded, into_graphs, is_compiled
from tracekit.findings.culprits import (
    Culprit,
    blamed_on,
    by_name,
    grouped,
    outermost_operators,
    plain,
    step_ns_of,
    where_of_buckets,
)
from tracekit.findings.holes import OFTEN, is_hole
from tracekit.findings.kernels import time_of
from tracekit.findings.queue_waits import queue_waits
from tracekit.findings.rules.compiled_code import entering
from tracekit.findings.rules.cpu_compute import computing, is_preparing
from tracekit.findings.rules.habits import GARBAGE
from tracekit.findings.rules.pageable_copies import pageable_calls
from tracekit.findings.rules.recorded_graphs import are_prepared, time_of_making_graphs
from tracekit.findings.rules.unrecorded_host import between_calls
from tracekit.findings.verdict import HOST_BOUND
from tracekit.profile import Profile
from tracekit.profile.recording_words import median
from tracekit.trace.facts.laws.sides import has_operators
from tracekit.trace.roles import PYTHON

_MIN_SHARE_OF_STEP = 0.05  # of a step: between short kernels of any healthy step there is some of it
_OF_A_LINE = 0.3  # of the time: a line with less is not the culprit
_MAIN_SHARE = 0.5  # of the time
_INFLATED = 1.1  # times as long as unprofiled: below, it is not worth a clause
_GRAPHS = "https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-graphs"
_COMPILE = "https://docs.pytorch.org/docs/stable/generated/torch.compile.html"
_TERMS = {"launch_bound": "Launch-bound", "dispatch_bound": "Dispatch-bound", "python_bound": "Python-bound"}
_MIN_SHARE_TO_REPORT = 0.01  # of a step: shorter parts are not told
_NEARLY = 0.98  # of the GPU's idle time
_ADVICE = {
    "launch_bound": (
        'Submit whole steps at once with CUDA graphs: torch.compile(mode="reduce-overhead") or torch.cuda.graph, which '
        "save at most {saving} a step; or do more in each kernel, with larger batches or fused operators.",
        _GRAPHS,
    ),
    "dispatch_bound": (
        'Dispatch fewer operators: torch.compile fuses them, CUDA graphs (mode="reduce-overhead") skip their dispatch, '
        "and both together save at most {saving} a step; larger batches hide the overhead.",
        _COMPILE,
    ),
    "python_bound": (
        "Do less in Python between operators: move what stays the same out of the loop, replace loops over tensors "
        "with a single operator, or compile the model. This saves at most {saving} a step.",
        _COMPILE,
    ),
}
# Where something is compiled already.
_ADVICE_COMPILED = {
    "launch_bound": (
        'Submit whole steps at once with CUDA graphs (mode="reduce-overhead", or torch.cuda.graph), which save at most '
        "{saving} a step; or do more in each kernel, with larger batches.",
        _GRAPHS,
    ),
    "dispatch_bound": (
        "Leave less outside of compiled graphs ({outside}), or skip the dispatch with CUDA graphs "
        '(mode="reduce-overhead"): this saves at most {saving} a step; larger batches hide the overhead.',
        _GRAPHS,
    ),
    "python_bound": (
        "Do less in Python between operators and compiled graphs: move what stays the same out of the loop, replace "
        "loops over tensors with a single operator, remove graph breaks. This saves at most {saving} a step.",
        _COMPILE,
    ),
}
_ADVICE_UNKNOWN = (  # where no operators were recorded
    "Record operators, too, to see what the host does (torch.profiler with ProfilerActivity.CPU, or nsys with "
    "--pytorch=autograd-nvtx). CUDA graphs save at most {saving} a step, whatever it is."
)
# Where most of it passes in what Inductor generated to call its kernels.
_REGION = re.compile(r"Torch-Compiled Region.*", re.DOTALL)
_MANY_REGIONS = 3  # a step: forward and a loss may well be compiled apart
_WRAPPER = re.compile(r"## Call CompiledFxGraph .*")
_ADVICE_WRAPPERS = (
    'Skip the generated wrappers: CUDA graphs (mode="reduce-overhead") replay all launches of a graph at once; where '
    'sizes vary, options={"cpp_wrapper": True} makes the wrappers C++. This saves at most {saving} a step.'
)
_ADVICE_REGIONS = " Compile fewer and larger regions: a step enters {number} of them."
# Beside the host's time, which is the cost. The kernels of a graph follow each other more closely.
_ADVICE_GAPS = " CUDA graphs may also shorten the gaps between kernels, by another {gaps} a step at most."
# Where CUDA graphs are replayed already.
_ADVICE_GRAPHS = (
    "Bring more of the step into the CUDA graphs: {into_graphs}. This saves at most {saving} a step; larger batches "
    "hide the overhead."
)
# Where they are prepared for new sizes instead.
_ADVICE_PREPARED = (
    "Have CUDA graphs replayed, which skips this: pad batches to a few sizes, so that no step has to prepare graphs of "
    "new ones. This saves at most {saving} a step; larger batches hide the overhead."
)
# Where a step is one launch, there is nothing to bring into a graph.
_ADVICE_ONE_LAUNCH = (
    "Do more with each launch, for a step makes no other: larger batches, or several steps in one CUDA graph. This "
    "saves at most {saving} a step."
)


@rule("slow_host", device="gpu")
def slow_host(profile: Profile) -> Iterator[Finding]:
    """`launch_bound`, `dispatch_bound` or `python_bound`: by the largest of the reasons; long stretches have rules of
    their own."""
    mean, trace, pieces = profile.means["wall"], profile.trace, profile.attribution.pieces
    if mean is None:
        return
    unknown = between_calls(profile)
    is_claimed = (pieces.of(*SUBMITTING) | unknown) & ~is_hole(pieces) & ~_of_other_rules(profile)
    is_claimed &= ~profile.unseen.covers(pieces.start)
    times = {name: step_ns_of(profile, is_claimed & pieces.of(*keys)) for name, keys in HOST_BOUND.items()}
    unknown_ns = step_ns_of(profile, is_claimed & unknown)
    idle = sum(times.values()) + unknown_ns
    if idle < _MIN_SHARE_OF_STEP * mean.step_ns:
        return
    name = max(times, key=lambda verdict: times[verdict])
    line, share = where_of_buckets(profile, *(key for key in HOST_BOUND[name] if key in SUBMITTING))
    culprits = _operators(profile, is_claimed)
    operator = plain(trace.names[culprits[0].key]) if culprits else None
    if share >= _OF_A_LINE:
        location = Where(line.file, line.line, line.function, operator)
    else:
        location = Where(function=_function(profile, is_claimed, culprits), operator=operator)
    culprit_name = location.function or operator
    culprit = location.at or (f" in {culprit_name}" if culprit_name else "")
    most_of_all = f", most of all{culprit}" if culprit else ""
    advice, link = (_ADVICE_COMPILED if is_compiled(profile) else _ADVICE)[name]
    wrapped, replays = _in_wrappers(profile, is_claimed), trace.census.any(lambda roles: roles.graph_launch)
    if name != "python_bound" and replays and graphs_recorded(profile) < OFTEN:
        advice = _ADVICE_GRAPHS if len(_of_counted_steps(profile)[1]) > profile.counted_steps else _ADVICE_ONE_LAUNCH
    elif name != "python_bound" and are_prepared(profile):
        advice, link = _ADVICE_PREPARED, _GRAPHS
    elif wrapped >= _MAIN_SHARE * idle and not replays:
        advice, link = _ADVICE_WRAPPERS, _GRAPHS
    elif not has_operators(trace):
        advice = _ADVICE_UNKNOWN
    term = _TERMS[name] if has_operators(trace) else "Host-bound"
    outside = "graph breaks, losses, the optimizer" if one_by_one.optimizer_steps(profile) else "graph breaks, losses"
    advice = advice.replace("{outside}", outside).replace("{into_graphs}", into_graphs(profile))
    is_shared = profile.variant is not None and profile.variant.gpu_neighbours
    gaps = mean.parts["gpu_gap"] - (
        queue_waits(profile).step_ns if is_shared else 0
    )  # others make it wait with any mode
    if "CUDA graphs" in advice and not replays and gaps >= _MIN_SHARE_TO_REPORT * mean.step_ns:
        advice += _ADVICE_GAPS.format(gaps=duration(gaps))
    entered = trace.where(lambda part: part.roles.host & part.roles.named(_REGION))
    regions = round(float(profile.begins_in_counted(entered).sum()) / profile.counted_steps)
    if regions >= _MANY_REGIONS and not entering(profile).any():
        advice += _ADVICE_REGIONS.format(number=count(regions))
    # Other findings tell of the rest of the time in which the GPU idles although nothing is queued, such as waits for
    # copies.
    all_idle = sum(time for key, time in mean.parts.items() if key not in (*ON_THE_GPU, "gpu_gap"))
    rest = " (other findings cover the rest of its idle time)" if idle < _NEARLY * all_idle else ""
    yield Finding(
        name,
        f"{term}: the host is too slow{most_of_all}",
        why=f"For this reason, the GPU idles {duration(idle, like=mean.step_ns)} of {duration(mean.step_ns)} a step"
        f"{rest}: "
        f"{_parts(profile, is_claimed, mean.step_ns)}{_of_wrappers(profile, wrapped, idle)}."
        f"{_costliest_operators(profile, culprits)} {_launches(profile)}.",
        do=advice,
        where=location,
        evidence=evidence(
            profile, np.concatenate([culprit.rows for culprit in culprits[:3]] or [blamed_events(profile, is_claimed)])
        ),
        link=link,
        confidence="inferred" if unknown_ns or (name == "python_bound" and not trace.has_stacks) else "measured",
        claim=pieces.union(is_claimed),
        general=True,
    )


def _in_wrappers(profile: Profile, piece_mask: Bools) -> float:
    """How much of these pieces passes in the wrappers of compiled graphs, per counted step."""
    pieces = profile.attribution.pieces
    wrappers = profile.trace.where(lambda part: part.roles.host & part.roles.named(_WRAPPER))
    is_counted = piece_mask & profile.counted[pieces.step]
    wrapped_ns = time_of(profile, wrappers).within(pieces.start[is_counted], pieces.end[is_counted])
    return float(wrapped_ns.sum()) / profile.counted_steps


def _of_wrappers(profile: Profile, wrapped: float, idle: float) -> str:
    """The part of the wrappers, and what makes it look longer than it is: recorded stacks, or the profiler itself."""
    if wrapped < _MAIN_SHARE * idle:
        return ""
    run = profile.variant
    if run is not None and run.measured is not None and run.profiled is not None:
        slower = run.profiled.step_ns / run.measured.step_ns
        caveat = f", in steps that are {ratio(slower)} as long as unprofiled ones" if slower > _INFLATED else ""
    else:
        caveat = ", which recording stacks makes longer" if profile.trace.has_stacks else ""
    return f"; {duration(wrapped, like=idle)} of it in wrappers that Inductor generated{caveat}"


def _of_other_rules(profile: Profile) -> Bools:
    """The pieces that are blamed on an event with a rule of its own."""
    pieces = profile.attribution.pieces
    apart = np.isin(pieces.event, np.union1d(pageable_calls(profile.trace), computing(profile))) | is_preparing(profile)
    apart |= time_of_making_graphs(profile).covers(pieces.start) | entering(profile) | blamed_on(profile, GARBAGE)
    return apart


def _costliest_operators(profile: Profile, culprits: list[Culprit]) -> str:
    names = [f"{plain(profile.trace.names[culprit.key])} ({duration(culprit.step_ns)})" for culprit in culprits[:2]]
    parts = "The largest parts are" if len(names) > 1 else "The largest part is"
    return f" {parts} under {' and '.join(names)}." if names else ""


def _operators(profile: Profile, piece_mask: Bools) -> list[Culprit]:
    """The outermost operators that contain these pieces, the costliest first."""
    trace = profile.trace

    def name_of(events: Ints) -> Ints:
        outer = outermost_operators(profile, events)
        return np.where(outer >= 0, trace.name_codes[np.maximum(outer, 0)], -1).astype(np.int64)

    return [culprit for culprit in grouped(profile, piece_mask, name_of) if culprit.key >= 0]


def _function(profile: Profile, piece_mask: Bools, operators: list[Culprit]) -> str | None:
    """The innermost Python function with most of these pieces, if it has more of them than any operator."""
    kinds = profile.trace.kinds[np.maximum(profile.attribution.pieces.event, 0)]
    functions = by_name(profile, piece_mask & (kinds == PYTHON))
    most_ns = max((culprit.step_ns for culprit in operators), default=0.0)
    return plain(functions[0].name) if functions and functions[0].step_ns > most_ns else None


def _parts(profile: Profile, piece_mask: Bools, like: float) -> str:
    pieces = profile.attribution.pieces
    times = {key: step_ns_of(profile, piece_mask & pieces.of(key)) for key in (*SUBMITTING, "unrecorded")}
    largest = sorted((key for key in times if times[key] >= _MIN_SHARE_TO_REPORT * like), key=lambda key: -times[key])
    return ", ".join(f"{duration(times[key], like=like)} {BUCKETS[key].noun}" for key in largest)


def _launches(profile: Profile) -> str:
    """How long it takes to submit work, and how long that work then runs."""
    kernels, calls = _of_counted_steps(profile)
    if not len(calls):
        return "No launch call is linked to a kernel"
    launches, works = (round(len(times) / profile.counted_steps) for times in (calls, kernels))
    return (
        f"{many(launches, 'launch', 'launches')} a step take{'s' if launches == 1 else ''} "
        f"{median(profile.trace, calls)}{'' if launches == 1 else ' each'} to submit, "
        f"{many(works, 'kernel or copy', 'kernels and copies')} {median(profile.trace, kernels)}"
        f"{'' if works == 1 else ' each'} to run (medians)"
    )


def _of_counted_steps(profile: Profile) -> tuple[Ints, Ints]:
    """How long each GPU activity of the counted steps takes, and each call that submitted them."""
    trace = profile.trace
    work, calls = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for activities, launches in trace.links.some():
        in_counted = profile.begins_in_counted(launches)
        work.append(trace.dur_ns[activities[in_counted]])
        calls.append(launches[in_counted].astype(np.int64))
    return np.concatenate(work), trace.dur_ns[distinct(np.concatenate(calls))]
