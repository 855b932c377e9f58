"""Is anything compiled while steps are measured, and if it is compiled again, why? Is time lost to something that only
starts up, in the first steps or where code is loaded at its first use, or to the profiler itself?
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from msgspec import Struct

from tracekit.analyses.compiles import spans_of
from tracekit.base.intervals import Union
from tracekit.base.pages import Cure
from tracekit.base.units import duration, many
from tracekit.findings import Finding, FindingPage, Where, blamed_events, evidence, rule
from tracekit.findings.compiler_advice import against_guard
from tracekit.findings.culprits import by_name, plain
from tracekit.findings.page import PAD_BATCHES
from tracekit.profile import Profile
from tracekit.profile.start_up import cold_steps_sentence
from tracekit.vocabulary.event_names import PREPARATION

_DYNAMIC = "https://docs.pytorch.org/docs/stable/torch.compiler_dynamic_shapes.html"
_CACHE = "https://docs.pytorch.org/tutorials/recipes/torch_compile_caching_tutorial.html"
_TREES = "https://docs.pytorch.org/docs/stable/torch.compiler_cudagraph_trees.html"
_TUNING = "https://docs.pytorch.org/docs/stable/generated/torch.compile.html"
_LAZY_LOADING = "https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#lazy-loading"
_PREPARED = "prepared"
_KINDS = {
    _PREPARED: "CUDA graph preparation",
    "first": "first compilation",
    "backward": "backward compilation",
    "cudagraph": "CUDA graph recording",
    "unknown": "compilation",
}
Span = dict[str, Any]  # a row of `compiles.SPANS`
_FIRST = "the first "


class _Cause(Struct, frozen=True):
    """One reason why something is compiled; `id` is that of the finding, and of the verdict."""

    id: str
    applies: Callable[[Span, int], bool]  # given a span, and when all CUDA graphs had been recorded once
    headline: str  # what happens inside steps
    what: Callable[[list[Span]], str]  # what happens, with its number, as the subject of a sentence
    advice: str  # where the guards that failed say nothing better
    link: str


def _number_of(noun: str, after: str = "") -> Callable[[list[Span]], str]:
    return lambda spans: many(len(spans), noun) + after


def _by_kind(spans: list[Span]) -> str:
    kinds = [_PREPARED if span["span"] == PREPARATION else span["kind"] for span in spans]
    *leading, last = (many(kinds.count(kind), _KINDS.get(kind, kind)) for kind in dict.fromkeys(kinds))
    return f"{', '.join(leading)} and {last}" if leading else last


_CAUSES = (
    _Cause(
        "recompiles",
        lambda span, _: span["kind"] == "recompile",
        "Code is recompiled inside steps",
        _number_of("recompilation"),
        "Find out what changes from call to call: a recording by tracekit capture says it, and so does "
        "TORCH_LOGS=recompiles. Then pass it as a tensor, mark it dynamic (torch._dynamo.mark_dynamic), or keep it out "
        "of the compiled function.",
        _DYNAMIC,
    ),
    _Cause(
        "compile_in_steps",  # recording what was not recorded before is no recompilation
        lambda span, settled: span["kind"] == "cudagraph" and span["start_ns"] > settled,
        "CUDA graphs are recorded in later steps, too",
        _number_of("recording", " after steps that only replayed graphs"),
        "Keep sizes and addresses of inputs the same from step to step, since each set needs its own graph (pad to "
        "a few sizes, copy into buffers that are never replaced), and mark where a step begins "
        "(torch.compiler.cudagraph_mark_step_begin()).",
        _TREES,
    ),
    _Cause(
        "compile_in_steps",
        lambda span, _: span["kind"] == "cudagraph",
        "CUDA graphs are made inside steps",
        _by_kind,
        "Each set of input sizes needs a graph of its own, which is recorded when the sizes come for the second "
        "time: pad to a few sizes, and run each of them twice before the steps that count; where sizes hardly ever "
        'come again, do without CUDA graphs (mode="default").',
        _TREES,
    ),
    _Cause(
        "compile_in_steps",
        lambda span, _: span["kind"] == "autotune",
        "Kernels are autotuned inside steps",
        _number_of("autotuning run"),
        "Run every size once before the steps that count, since kernels are tuned at their first call with it, "
        'keep the cache between runs (TORCHINDUCTOR_CACHE_DIR), or turn autotuning off (mode="default").',
        _TUNING,
    ),
    _Cause(
        "compile_in_steps",
        lambda span, _: True,
        "Code is compiled inside steps",
        _by_kind,
        "Compile before the steps that count: run every shape once, and leave those steps out of what you "
        "measure; keep the compile cache between runs (TORCHINDUCTOR_CACHE_DIR), so that later runs start from it.",
        _CACHE,
    ),
)


_RECOMPILES_PAGE = FindingPage(
    "recompiles",
    "Code is recompiled inside steps",
    says="""A function that was compiled already is compiled again while steps run, because a guard of its compiled
        code no longer holds. With a capture or a compile log, the finding says which guard, and what to do about that
        one.""",
    slow="""Compiling takes seconds, in which nothing else happens. Batches of graphs hardly ever have the same number
        of nodes and edges: the first new size recompiles with dynamic sizes. Floats that change, such as a learning
        rate, and integers that a module holds recompile again and again.""",
    cost="""It claims the bucket `compile` during these spans. Means leave out steps that compile, so this cost, and
        all others with it, is spread over all recorded steps.""",
    limits="""A recording of a few steps overstates recompilations that end once all sizes were met, and understates
        rare ones. A bare trace has neither the guard nor the reason. Torch 2.0 leaves no sign of compiling in a
        trace.""",
    cures=(
        Cure("Mark sizes as dynamic: `torch._dynamo.mark_dynamic`, `dynamic=True`.", "rounding"),
        PAD_BATCHES,
        Cure(
            "Pass numbers that change as tensors (`lr=torch.tensor(0.01)`), or keep them out of the function.",
            "rounding",
        ),
    ),
    links=(_DYNAMIC,),
)
_COMPILE_PAGE = FindingPage(
    "compile_in_steps",
    "Something is compiled inside steps",
    says="""While steps are recorded, something is compiled for the first time, autotuned, or recorded as a CUDA graph;
        or TorchScript's fuser compiles. The finding says which, how often, and for how long.""",
    slow="""Compiling takes seconds, in which nothing else happens. It is worth its time if it happens once, before the
        steps that count; a step that is measured with it says nothing about training.""",
    cost="""It claims the bucket `compile` during these spans (for TorchScript's fuser, the host's long stretches in
        its fallback). The cost is spread over all recorded steps, as are all others beside it.""",
    limits="""It weighs as much as the recording is short: over an epoch it may not matter. Whether a compilation would
        come again, a recording that ends does not show.""",
    cures=(
        Cure("Run every size once before the steps that count; for CUDA graphs, twice.", "changes nothing"),
        Cure("Keep the compile cache between runs (`TORCHINDUCTOR_CACHE_DIR`).", "changes nothing"),
        Cure('Turn autotuning off, or do without CUDA graphs (`mode="default"`).', "rounding"),
        Cure(
            "Turn TorchScript's fuser off (`torch._C._jit_set_texpr_fuser_enabled(False)`).",
            "rounding",
        ),
    ),
    links=(_CACHE, _TREES),
)


@rule("compiling", pages=(_RECOMPILES_PAGE, _COMPILE_PAGE))
def compiling(profile: Profile) -> Iterator[Finding]:
    """`compile_in_steps` and `recompiles`, by cause, spread over all steps that were recorded."""
    pieces = profile.attribution.pieces
    remaining = pieces.union(pieces.of("compile"))
    if not remaining.total():
        return
    spans = spans_of(profile)
    # When the first step begins that replays CUDA graphs and records none, ns; if there is none, later than any event.
    # A step that records a graph also replays it, and goes on to record the next.
    trace = profile.trace
    replaying = trace.steps.of(trace.ts_ns[trace.where(lambda part: part.roles.graph_launch)])
    recordings = np.array([span["start_ns"] for span in spans if span["kind"] == "cudagraph"], np.int64)
    calm = np.setdiff1d(replaying[replaying >= 0], trace.steps.of(recordings))
    settled = int(trace.steps.issued[calm[0]]) if len(calm) else np.iinfo(np.int64).max
    for cause in _CAUSES:
        caused = [span for span in spans if cause.applies(span, settled)]
        spans = [span for span in spans if not cause.applies(span, settled)]
        starts = np.array([span["start_ns"] for span in caused], np.int64)
        claim = remaining.common(Union.of(starts, starts + np.array([span["dur_ns"] for span in caused], np.int64)))
        if claim.total():
            remaining = remaining.minus(claim)
            yield _finding(profile, cause, caused, claim)


def _finding(profile: Profile, cause: _Cause, spans: list[Span], claim: Union) -> Finding:
    longest_first = sorted(spans, key=lambda span: -int(span["dur_ns"]))
    longest = longest_first[0]
    # Why, in the compiler's words.
    reasons = [reason for span in longest_first if (reason := span.get("guard") or span.get("reason"))]
    because = f" The reason: {reasons[0].rstrip('.')}." if reasons else ""
    at_most = f", the longest {duration(longest['dur_ns'])}" if len(spans) > 1 else ""
    view = profile.attribution.answered_view
    recorded = duration(int(view.step_ns[view.known].sum()))
    places = {(_called(span), _location(span).at) for span in spans}
    against_guards = map(against_guard, reasons if cause.id == "recompiles" else ())
    return Finding(
        cause.id,
        f"{cause.headline}{', most of all' if len(places) > 1 else ':'} {_called(longest)}{_location(longest).at}",
        why=f"{cause.what(spans)} {'take' if len(spans) > 1 else 'takes'} {duration(claim.total())} of the "
        f"{recorded} recorded{at_most}.{because}",
        do=next(filter(None, against_guards), cause.advice),
        where=_location(longest),
        evidence=evidence(profile, np.array([span["event"] for span in spans], np.int64)),
        link=cause.link,
        claim=claim,
        every_step=True,
    )


def _called(span: Span) -> str:
    return str(span.get("function") or (f"compile id {span['id']}" if span["id"] else span["span"]))


def _location(span: Span) -> Where:
    function_and_id = " ".join(filter(None, (span.get("function"), span["id"])))
    return Where(span.get("file"), span.get("line"), function_and_id or str(span["span"]))


_COLD_PAGE = FindingPage(
    "cold_start",
    "Something starts up",
    says="""Something is used for the first time: CUDA loads the code of a kernel, a library such as cuBLAS or cuDNN
        starts, the context is made, the allocator's cache fills. It is reported for first steps that are longer for
        this reason, which the means leave out; for first calls that keep the GPU waiting for a millisecond or more;
        and for code that is loaded in steps that count.""",
    slow="""CUDA loads a kernel's code only at its first use, and libraries set up handles and workspaces. Each happens
        once in a process.""",
    cost="""For first steps, it is what they take longer than the steps after them, as far as first uses explain it: a
        total, marked “once”. For code that is loaded later, it claims the bucket `module_load`, for first calls the
        stretches themselves; the cost is what a replay without them saves.""",
    limits="""In a long run it does not matter. Events count as first uses only if the recording shows the process from
        its start; a recording that begins later may hold a first use that is reported as `host_freeze`.""",
    cures=(
        Cure("Warm up before recording (`wait` and `warmup` of the profiler's schedule).", "changes nothing"),
        Cure("Load all code at the start: `CUDA_MODULE_LOADING=EAGER`.", "memory"),
    ),
    links=(_LAZY_LOADING,),
    replayed=False,
)
_PROFILER_PAGE = FindingPage(
    "profiler_overhead",
    "The profiler itself delays the host",
    says="""The GPU idles while the profiler works: events of the category `overhead`, such as flushing its buffers,
        cover the time in which the host would have submitted work.""",
    slow="""Recording costs time, and the more is recorded (stacks, shapes, memory), the more. A run without the
        profiler does not pay it.""",
    cost="It claims the bucket `profiler`: overhead events while the host dispatches, launches or allocates.",
    limits="""Only overhead that the profiler records of itself is counted. What recording adds to each operator is
        part of `dispatch` and `python`, in no event of its own; a capture estimates it from its unprofiled passes.""",
    cures=(
        Cure("Record fewer steps, without stacks and shapes.", "changes nothing"),
        Cure("Quote the time of unprofiled steps: `tracekit capture` measures both.", "changes nothing"),
    ),
    links=("https://docs.pytorch.org/docs/stable/profiler.html",),
)


@rule("lost_to_tools", pages=(_COLD_PAGE, _PROFILER_PAGE))
def lost_to_tools(profile: Profile) -> Iterator[Finding]:
    """`cold_start` if GPU code is loaded at its first use, `profiler_overhead` if the profiler delays the host."""
    mean, pieces = profile.means["wall"], profile.attribution.pieces
    if mean is None:
        return
    if mean.parts["module_load"]:
        is_lost = pieces.of("module_load")
        culprits = by_name(profile, is_lost)
        yield Finding(
            "cold_start",
            f"GPU code is loaded at its first use{f' by {plain(culprits[0].name)}' if culprits else ''}",
            why=f"The GPU idles for {duration(mean.parts['module_load'])} a step meanwhile.",
            do="Warm up before you measure or record; CUDA_MODULE_LOADING=EAGER loads everything at the start.",
            where=Where(operator=culprits[0].name) if culprits else Where(),
            evidence=evidence(profile, culprits[0].rows) if culprits else (),
            link=_LAZY_LOADING,
            claim=pieces.union(is_lost),
        )
    if mean.parts["profiler"]:
        is_lost = pieces.of("profiler")
        yield Finding(
            "profiler_overhead",
            "The profiler itself delays the host",
            why=f"The GPU idles for {duration(mean.parts['profiler'])} a step because of it.",
            do="Record fewer steps, without stacks and shapes, and rely on the step time of a run that is not "
            "profiled.",
            evidence=evidence(profile, blamed_events(profile, is_lost)),
            link="https://docs.pytorch.org/docs/stable/profiler.html",
            claim=pieces.union(is_lost),
        )


@rule("start_up")
def start_up(profile: Profile) -> Iterator[Finding]:
    """`cold_start`, of steps that the means leave out: its cost is a total, spread over all steps for programs."""
    cold, view = profile.cold_steps, profile.attribution.answered_view
    if not cold:
        return
    steps = int(view.known.sum())
    cost = sum(sum(step.parts.values()) for step in cold) / steps
    largest_part = max(cold, key=lambda step: sum(step.parts.values())).largest_part
    trace, of_cold = profile.trace, np.array([step.index for step in cold])
    calls = trace.where(lambda part: part.roles.host & ~part.roles.annotation & part.lasting)
    yield Finding(
        "cold_start",
        f"One-time start-up makes the first {'step' if len(cold) == 1 else f'{len(cold)} steps'} longer",
        cost,
        "Warm up first: this happens once, so it matters only in a short run.",
        f"Left out of the means: {cold_steps_sentence(profile)}. No other figure contains it.",
        share=cost / float(view.step_ns[view.known].mean()),
        where=Where(operator=largest_part.removeprefix(_FIRST)) if largest_part.startswith(_FIRST) else Where(),
        evidence=evidence(profile, calls[np.isin(trace.steps.of(trace.ts_ns[calls]), of_cold)]),
        link=_LAZY_LOADING,
        once=True,
        over_steps=steps,
    )
