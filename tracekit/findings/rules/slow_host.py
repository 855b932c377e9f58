"""Does the GPU idle because the host submits its work too slowly, or while nothing was recorded of the host?"""

import re
from collections.abc import Iterator

import numpy as np

from tracekit.base.intervals import NO_INTS, Bools, Ints, distinct
from tracekit.base.pages import Cure
from tracekit.base.units import count, duration, many, ratio
from tracekit.engine.buckets import BUCKETS, ON_THE_GPU, SUBMITTING
from tracekit.findings import Finding, FindingPage, Where, blamed_events, evidence, one_by_one, rule, time_of_rules
from tracekit.findings.compiler_advice import can_compile, graphs_prepared, graphs_recorded, into_graphs, is_compiled
from tracekit.findings.culprits import by_name, grouped, outermost_operators, plain, step_ns_of, where_of_buckets
from tracekit.findings.holes import LEAST_NS, OFTEN, is_hole
from tracekit.findings.kernels import queue_waits, time_of
from tracekit.findings.loops import busiest_line, evidence_of, vectorise
from tracekit.findings.page import COMPILE
from tracekit.findings.verdict import HOST_BOUND, mostly_unknown
from tracekit.profile import Mean, Profile, growth
from tracekit.profile.recording_words import median
from tracekit.trace.facts.coverage import device_side_missing
from tracekit.trace.facts.laws.sides import has_operators
from tracekit.trace.roles import PYTHON

_MIN_SHARE_OF_STEP = 0.05  # of a step: between short kernels of any healthy step there is some of it
_OF_A_LINE = 0.3  # of the time: a line with less is not the culprit
_MAIN_SHARE = 0.5  # of the time
_INFLATED = 1.1  # times as long as unprofiled: below, it is not worth a clause
_GRAPHS = "https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-graphs"
_COMPILE = "https://docs.pytorch.org/docs/stable/generated/torch.compile.html"
_PROFILER = "https://docs.pytorch.org/docs/stable/profiler.html"
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
# Where the GPU is too old for torch.compile, and so for its modes.
_ADVICE_TOO_OLD = {
    "launch_bound": (
        "Submit whole steps at once with CUDA graphs (torch.cuda.graph), which save at most {saving} a step; or do "
        "more in each kernel, with larger batches or fused operators.",
        _GRAPHS,
    ),
    "dispatch_bound": (
        "Skip the dispatch with CUDA graphs (torch.cuda.graph), which save at most {saving} a step; larger batches "
        "hide the overhead. Compiling is no option: this GPU is too old for Triton.",
        _GRAPHS,
    ),
    "python_bound": (
        "Do less in Python between operators: move what stays the same out of the loop, or replace loops over tensors "
        "with a single operator. This saves at most {saving} a step.",
        _PROFILER,
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
# Rules about reasons for which the host may be slow.
_OF_CERTAIN_CAUSES = (
    "pageable_copies", "host_compute", "preprocessing", "recorded_graphs", "prepared_graphs", "entering_compiled_code",
    "habits", "graph_building",
)  # fmt: skip
# Where a step is one launch, there is nothing to bring into a graph.
_ADVICE_ONE_LAUNCH = (
    "Do more with each launch, for a step makes no other: larger batches, or several steps in one CUDA graph. This "
    "saves at most {saving} a step."
)


_UNEXPLAINED = FindingPage(
    "idle_unexplained",
    "Nothing was recorded while the GPU idled",
    says="""For a while, nothing is in the trace: no operator, no call, no Python frame, and no work of the GPU. It is
        reported where the host was not recorded at all, and for single stretches of a millisecond or more between two
        operators for which no line is known. On a CPU, it says the same of the host. As a verdict, it says that the
        profiler itself takes most of a step.""",
    slow="""That is not known: Python that was not recorded, other work on the core, a lock, or swapping all look like
        this. The step was that much longer, whatever the cause.""",
    cost="""It claims the time in the bucket `unrecorded`, and single stretches of `python` without event or line.
        Waits in collectives, and time of which the GPU's side is unknown, are left out.""",
    limits="""It is inferred from silence, and marked so. Without Python stacks, ordinary Python of yours looks exactly
        like it. Before the first and after the last recorded event, silence proves nothing.""",
    cures=(
        Cure(
            """Record what is missing: `ProfilerActivity.CPU`, and `with_stack=True` for the lines; or let `tracekit
            capture` record the script.""",
            "changes nothing",
        ),
        Cure("Rule out the machine: more busy threads than cores, swapping, other jobs.", "changes nothing"),
    ),
    links=(_PROFILER,),
)


@rule("unrecorded_host", pages=(_UNEXPLAINED,))
def unrecorded_host(profile: Profile) -> Iterator[Finding]:
    """`idle_unexplained`: where the trace says nothing of the host, nobody can tell what it does."""
    mean, pieces = profile.means["wall"], profile.attribution.pieces
    if mean is None or not mean.parts.get("unrecorded") or device_side_missing(profile.trace) is not None:
        return
    is_claimed = pieces.of("unrecorded") & ~_between_calls(profile) & ~profile.unseen.covers(pieces.start)
    is_counted = is_claimed & profile.counted[pieces.step]
    longest_ns = int(pieces.dur[is_counted].max(initial=0))
    if not longest_ns:
        return
    # The first event that begins after each of these times; the last of all, where none does.
    rows = profile.trace.where(lambda part: part.roles.host | part.roles.gpu)
    following = np.searchsorted(profile.trace.ts_ns[rows], pieces.end[is_counted])
    yield Finding(
        "idle_unexplained",
        "The GPU idles, and nothing was recorded meanwhile"
        if profile.trace.device == "gpu"
        else "Nothing was recorded for a while",
        why=f"What the host does then is unknown: {duration(step_ns_of(profile, is_claimed))} a step, up to "
        f"{duration(longest_ns)} at a time.",
        do="Record operators and Python stacks (ProfilerActivity.CPU, with_stack=True), or capture with tracekit, to "
        "see what the host did meanwhile.",
        evidence=evidence(profile, distinct(rows[np.minimum(following, len(rows) - 1)])),
        link=_PROFILER,
        confidence="inferred",
        claim=pieces.union(is_claimed).minus(profile.waits_in_collectives),
    )


def _between_calls(profile: Profile) -> Bools:
    """The short pieces in which the GPU waits for the host's next call and nothing else of the host was recorded,
    because operators never were: whatever it does, it is the host that is slow."""
    trace, pieces = profile.trace, profile.attribution.pieces
    calls = trace.where(lambda part: part.roles.runtime & part.process & part.lasting)
    if has_operators(trace) or not len(calls) or mostly_unknown(profile):
        return np.zeros(len(pieces.start), bool)
    first, last = int(trace.ts_ns[calls[0]]), int(trace.events_at(calls).end_ns.max())
    return pieces.of("unrecorded") & (pieces.dur < LEAST_NS) & (pieces.start >= first) & (pieces.end <= last)


_SUBMITTED_SLOWLY = """The rule adds up the GPU's idle time with nothing queued, in stretches below a millisecond, and
    reports it from 5 % of a step."""
_CLAIMED = """It claims the GPU's idle time in the buckets `kernel_launch`, `dispatch`, `python` and `guards`, in
    stretches below a millisecond, but for what rules about certain causes claim (pageable copies, preprocessing,
    garbage collection, graphs that are recorded or prepared, …)."""
_PROFILED = """Recording slows the host, and stacks and shapes slow it most. From a capture, costs are those of
    unprofiled steps; from a bare trace, they are those of recorded steps, and too high."""
_GRAPH_CURE = Cure(
    """Replay the step as a CUDA graph: `torch.compile(mode="reduce-overhead")`, or `torch.cuda.graph`. Graphs take
    memory, and sizes must not vary: pad batches to a few of them.""",
    "rounding",
)
_BATCH_CURE = Cure("Do more in each kernel, with larger batches or several graphs in each.", "results")
_LAUNCH_PAGE = FindingPage(
    "launch_bound",
    "The host submits work too slowly: launches",
    says=f"""The GPU idles because work reaches it too slowly, and of what the host does meanwhile, launching takes
        most (the bucket `kernel_launch`). {_SUBMITTED_SLOWLY} The finding compares what a launch takes with what a
        kernel takes.""",
    slow="""A launch takes the host some microseconds, however small the kernel. Where kernels run for less than that,
        launches set the pace: usual for GNNs on small graphs, whose layers are many small gathers, scatters and
        products.""",
    cost=_CLAIMED,
    limits=f"{_PROFILED} The id names the largest of three parts; the other two are claimed as well.",
    cures=(_GRAPH_CURE, COMPILE, _BATCH_CURE),
    links=(_GRAPHS,),
)
_DISPATCH_PAGE = FindingPage(
    "dispatch_bound",
    "The host submits work too slowly: dispatch",
    says=f"""The GPU idles because work reaches it too slowly, and of what the host does meanwhile, PyTorch's own code
        takes most: operators, autograd and compiled wrappers that choose what to run (the bucket `dispatch`).
        {_SUBMITTED_SLOWLY} A single stretch of a millisecond or more in one operator is a finding of its own under the
        same id: “The GPU waits for the host in …”.""",
    slow="""Each operator passes through dispatcher, autograd and memory allocation before it launches anything. Where
        operators are many and small, as in message passing on a small graph, that takes longer than the GPU's work.""",
    cost=_CLAIMED,
    limits=f"""{_PROFILED} Without recorded operators, dispatch cannot be told from Python, and the finding only says
        “Host-bound”. For a long stretch inside an operator, the trace does not show what the operator did.""",
    cures=(
        COMPILE,
        _GRAPH_CURE,
        Cure(
            "Use fused operators: `foreach` optimizers, sparse products instead of gather and scatter.",
            "rounding",
        ),
        _BATCH_CURE,
    ),
    links=(_COMPILE,),
)
_PYTHON_PAGE = FindingPage(
    "python_bound",
    "The host submits work too slowly: Python",
    says=f"""The GPU idles because work reaches it too slowly, and of what the host does meanwhile, Python between
        operators takes most (the buckets `python` and `guards`). {_SUBMITTED_SLOWLY} A single stretch of a millisecond
        or more at one line or in one function is a finding of its own under the same id: “The GPU waits for Python
        …”.""",
    slow="""Python runs one line at a time and holds back every launch that comes after it: loops over nodes, edge
        types or graphs, building of masks, logging, bookkeeping of hooks and modules.""",
    cost=_CLAIMED,
    limits=f"""{_PROFILED} Without stacks, Python is inferred from the silence between operators, and the finding is
        marked as inferred. A line is named only if it takes at least 30 % of the time.""",
    cures=(
        Cure("Move what stays the same out of the loop.", "changes nothing"),
        Cure(
            "Replace a loop over tensors with one operator (`index_add_`, `scatter`, broadcasting).",
            "rounding",
        ),
        COMPILE,
        Cure("Log and save every N steps, or in another thread that gets copies of the values.", "memory"),
    ),
    links=(_COMPILE,),
)


@rule("slow_host", device="gpu", pages=(_LAUNCH_PAGE, _DISPATCH_PAGE, _PYTHON_PAGE))
def slow_host(profile: Profile) -> Iterator[Finding]:
    """`launch_bound`, `dispatch_bound` or `python_bound`: by the largest of the reasons; long stretches have rules of
    their own."""
    mean, trace, pieces = profile.means["wall"], profile.trace, profile.attribution.pieces
    if mean is None:
        return
    unknown = _between_calls(profile)
    explained = time_of_rules(profile, *_OF_CERTAIN_CAUSES).plus(profile.unseen)
    is_claimed = (pieces.of(*SUBMITTING) | unknown) & ~is_hole(pieces) & ~explained.covers(pieces.start)
    times = {name: step_ns_of(profile, is_claimed & pieces.of(*keys)) for name, keys in HOST_BOUND.items()}
    unknown_ns = step_ns_of(profile, is_claimed & unknown)
    idle = sum(times.values()) + unknown_ns
    if idle < _MIN_SHARE_OF_STEP * mean.step_ns:
        return
    name = max(times, key=lambda verdict: times[verdict])

    def outer_name(events: Ints) -> Ints:
        """A number for the name of the outermost operator around each; −1 for none."""
        outer = outermost_operators(profile, events)
        return np.where(outer >= 0, trace.name_codes[np.maximum(outer, 0)], -1).astype(np.int64)

    culprits = [culprit for culprit in grouped(profile, is_claimed, outer_name) if culprit.key >= 0]
    operator = plain(trace.names[culprits[0].key]) if culprits else None
    line, share = where_of_buckets(profile, *(key for key in HOST_BOUND[name] if key in SUBMITTING))
    if share >= _OF_A_LINE:
        location = Where(line.file, line.line, line.function, operator)
    else:  # the innermost Python function with most of the time, if it has more of it than any operator
        functions = by_name(profile, is_claimed & (trace.kinds[np.maximum(pieces.event, 0)] == PYTHON))
        most_ns = max((culprit.step_ns for culprit in culprits), default=0.0)
        has_most = bool(functions) and functions[0].step_ns > most_ns
        location = Where(function=plain(functions[0].name) if has_most else None, operator=operator)
    culprit_name = location.function or operator
    culprit = location.at or (f" in {culprit_name}" if culprit_name else "")
    # Other findings tell of the rest of the time in which the GPU idles although nothing is queued, such as waits for
    # copies.
    all_idle = sum(time for key, time in mean.parts.items() if key not in (*ON_THE_GPU, "gpu_gap"))
    rest = " (other findings cover the rest of its idle time)" if idle < _NEARLY * all_idle else ""
    by_bucket = {key: step_ns_of(profile, is_claimed & pieces.of(key)) for key in (*SUBMITTING, "unrecorded")}
    reported = (key for key, ns in by_bucket.items() if ns >= _MIN_SHARE_TO_REPORT * mean.step_ns)
    parts = ", ".join(
        f"{duration(by_bucket[key], like=mean.step_ns)} {BUCKETS[key].noun}"
        for key in sorted(reported, key=lambda key: -by_bucket[key])
    )
    costliest = [f"{plain(trace.names[culprit.key])} ({duration(culprit.step_ns)})" for culprit in culprits[:2]]
    are = "parts are" if len(costliest) > 1 else "part is"
    of_operators = f" The largest {are} under {' and '.join(costliest)}." if costliest else ""
    wrapped_ns = _in_wrappers(profile, is_claimed)
    is_wrapped = wrapped_ns >= _MAIN_SHARE * idle
    in_wrappers = f"; {duration(wrapped_ns, like=idle)} of it in {_wrappers(profile)}" if is_wrapped else ""
    advice, link = _advice(profile, mean, name, is_wrapped)
    yield Finding(
        name,
        f"{_TERMS[name] if has_operators(trace) else 'Host-bound'}: the host is too slow"
        f"{f', most of all{culprit}' if culprit else ''}",
        why=f"For this reason, the GPU idles {duration(idle, like=mean.step_ns)} of {duration(mean.step_ns)} a step"
        f"{rest}: {parts}{in_wrappers}.{of_operators} {_launches(profile)}."
        + (evidence_of(loop) if (loop := busiest_line(profile)) is not None else ""),
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


def _advice(profile: Profile, mean: Mean, name: str, is_wrapped: bool) -> tuple[str, str]:
    """What to do about it, and where to read more."""
    trace = profile.trace
    if profile.growth:
        return growth.advice(profile.growth), ""
    if (loop := busiest_line(profile)) is not None:
        return vectorise(loop), ""
    eager = _ADVICE if can_compile(profile) else _ADVICE_TOO_OLD
    advice, link = (_ADVICE_COMPILED if is_compiled(profile) else eager)[name]
    replays = trace.census.any(lambda roles: roles.graph_launch)
    if name != "python_bound" and replays and graphs_recorded(profile) < OFTEN:
        advice = _ADVICE_GRAPHS if len(_of_counted_steps(profile)[1]) > profile.counted_steps else _ADVICE_ONE_LAUNCH
    elif name != "python_bound" and len(graphs_prepared(profile)[1]):
        advice, link = _ADVICE_PREPARED, _GRAPHS
    elif is_wrapped and not replays:
        advice, link = _ADVICE_WRAPPERS, _GRAPHS
    elif not has_operators(trace):
        advice = _ADVICE_UNKNOWN
    outside = "graph breaks, losses, the optimizer" if one_by_one.optimizer_steps(profile) else "graph breaks, losses"
    advice = advice.replace("{outside}", outside).replace("{into_graphs}", into_graphs(profile))
    gaps_ns = mean.parts["gpu_gap"]
    if profile.variant is not None and profile.variant.gpu_neighbours:  # others make it wait with any mode
        gaps_ns -= queue_waits(profile).step_ns
    if "CUDA graphs" in advice and not replays and gaps_ns >= _MIN_SHARE_TO_REPORT * mean.step_ns:
        advice += _ADVICE_GAPS.format(gaps=duration(gaps_ns))
    entered = trace.where(lambda part: part.roles.host & part.roles.named(_REGION))
    regions = round(float(profile.begins_in_counted(entered).sum()) / profile.counted_steps)
    if regions >= _MANY_REGIONS and not time_of_rules(profile, "entering_compiled_code").total():
        advice += _ADVICE_REGIONS.format(number=count(regions))
    return advice, link


def _in_wrappers(profile: Profile, piece_mask: Bools) -> float:
    """How much of these pieces passes in the wrappers of compiled graphs, per counted step."""
    pieces = profile.attribution.pieces
    wrappers = profile.trace.where(lambda part: part.roles.host & part.roles.named(_WRAPPER))
    is_counted = piece_mask & profile.counted[pieces.step]
    wrapped_ns = time_of(profile, wrappers).within(pieces.start[is_counted], pieces.end[is_counted])
    return float(wrapped_ns.sum()) / profile.counted_steps


def _wrappers(profile: Profile) -> str:
    """What they are, and what makes them look longer than they are: recorded stacks, or the profiler itself."""
    run = profile.variant
    if run is not None and run.measured is not None and run.profiled is not None:
        slower = run.profiled.step_ns / run.measured.step_ns
        caveat = f", in steps that are {ratio(slower)} as long as unprofiled ones" if slower > _INFLATED else ""
    else:
        caveat = ", which recording stacks makes longer" if profile.trace.has_stacks else ""
    return f"wrappers that Inductor generated{caveat}"


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
    work, calls = [NO_INTS], [NO_INTS]
    for activities, launches in trace.links.some():
        in_counted = profile.begins_in_counted(launches)
        work.append(trace.dur_ns[activities[in_counted]])
        calls.append(launches[in_counted].astype(np.int64))
    return np.concatenate(work), trace.dur_ns[distinct(np.concatenate(calls))]
