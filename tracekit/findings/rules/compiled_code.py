"""Which code does not stay compiled: graph breaks and the time that is demonstrably theirs, recompile limits, CUDA
graphs that were not recorded, and what is still submitted call by call between the replays of those that were?

Where a graph breaks, its function goes on in Python and enters compiled code again: the region of what follows is
nested in the function's. A function that cannot be resumed runs in Python as a whole, and the compiled regions that it
calls follow one another.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tracekit.base.intervals import NO_INTS, NO_TIME, Bools, Ints, Union, distinct
from tracekit.base.pages import Cure
from tracekit.base.units import count, duration, many, times
from tracekit.engine.buckets import SUBMITTING
from tracekit.findings import Finding, FindingPage, Where, blamed_events, evidence, rule
from tracekit.findings.compiler_advice import graphs_recorded, into_graphs, obstacles
from tracekit.findings.culprits import blamed_on, outermost_operators, plain, step_ns_of, where_of_event
from tracekit.findings.holes import OFTEN, is_hole
from tracekit.findings.page import PAD_BATCHES
from tracekit.profile import Profile
from tracekit.trace.rows import outermost

_REGION = re.compile(r"Torch-Compiled Region: .*", re.DOTALL)
_WRAPPER = re.compile(r"Torch-Compiled Region: .*|Pregraph bytecode|AOTDispatcher Runtime Wrapper Prologue", re.DOTALL)
# Around the kernels of a graph on a GPU; on a CPU, the kernels are part of it.
_CALL = re.compile(r"CompiledFunction(?:Backward)?|## Call CompiledFxGraph .*", re.DOTALL)
_BACKWARD = re.compile(r"CompiledFunctionBackward")
_ENTERS = re.compile(r"TorchDynamo Cache Lookup|Pregraph bytecode|AOTDispatcher Runtime Wrapper Prologue")
_MANY_ENTRIES = 3  # a step: forward and a loss may well be compiled apart
_LEFT = ("python", "guards")  # what runs outside of graphs; the wrappers of graphs have buckets of their own
_WRAPS = ("dispatch", "cpu_compute")
_OF_THE_HOST = ("python", "guards", "dispatch", "kernel_launch")  # what whole graphs would save some of
_BREAKS = "https://docs.pytorch.org/docs/stable/compile/programming_model.fix_graph_breaks.html"
_LINK = "https://docs.pytorch.org/docs/stable/torch.compiler_cudagraph_trees.html"


class BreakTime(Struct, frozen=True):
    """The time that breaks may cost, the pieces of the steps that it is part of, and what it is, in words."""

    claim: Union
    pieces: Bools
    description: str


def _break_time(profile: Profile) -> BreakTime | None:
    """The time between the graphs of functions that break; None where the run knows of no break."""
    if profile.variant is None or not profile.variant.ledger.breaks:
        return None
    trace, pieces = profile.trace, profile.attribution.pieces
    piece_mask = pieces.of(*_LEFT)
    regions = _regions(profile)
    if not len(regions):
        description = "all Python of a step, as no compiled region was recorded: at most that much is the breaks'"
        return BreakTime(pieces.union(piece_mask), piece_mask, description)
    outer = outermost(trace, regions)
    starts, ends = trace.ts_ns[outer], trace.ts_ns[outer] + trace.dur_ns[outer]
    if len(outer) == len(regions):
        steps = trace.steps.of(starts)
        same_step = np.flatnonzero(steps[:-1] == steps[1:])
        description = "all Python between compiled regions: at most that much is the breaks'"
        return _clipped(profile, piece_mask, ends[same_step], starts[same_step + 1], description)
    piece_mask |= pieces.of(*_WRAPS) & blamed_on(profile, _WRAPPER)
    resumed = distinct(np.searchsorted(starts, trace.ts_ns[np.setdiff1d(regions, outer)], side="right") - 1)
    # The function was entered before its first graph: that is no break's.
    graphs = np.append(pieces.start[~piece_mask], np.iinfo(np.int64).max)
    first = np.minimum(graphs[np.searchsorted(graphs, starts[resumed])], ends[resumed])
    calls = pieces.of("dispatch") & blamed_on(profile, _CALL)
    if not calls.any():
        description = "what runs between the graphs of the functions that break"
        return _clipped(profile, piece_mask, first, ends[resumed], description)
    # Of backward, one graph is left: that of the first one of forward, which runs last.
    backward = trace.where(lambda part: part.roles.named(_BACKWARD) & part.lasting)
    steps = trace.steps.of(trace.ts_ns[backward])
    backward = backward[:-1][steps[:-1] == steps[1:]]
    begins, until = trace.ts_ns[backward], trace.ts_ns[backward] + trace.dur_ns[backward]
    return _clipped(
        profile,
        piece_mask | calls,
        np.concatenate((first, begins)),
        np.concatenate((ends[resumed], until)),
        "what runs between the graphs of the functions that break, and calling each graph but one",
    )


def _clipped(profile: Profile, piece_mask: Bools, starts: Ints, ends: Ints, description: str) -> BreakTime:
    """The part of these pieces between those moments."""
    pieces, spans = profile.attribution.pieces, Union.of(starts, ends)
    in_span: Bools = piece_mask & (spans.within(pieces.start, pieces.end) > 0)
    return BreakTime(pieces.union(piece_mask).common(spans), in_span, description)


def _regions(profile: Profile) -> Ints:
    """The compiled regions that the main thread enters."""
    trace, main = profile.trace, profile.trace.threads.main
    if not trace.census.any(lambda roles: roles.named(_REGION)):
        return NO_INTS
    return trace.where(lambda part: part.roles.named(_REGION) & part.lasting & (part.track == main))


def _entries(profile: Profile) -> int:
    """How often a counted step enters compiled code on the main thread."""
    return round(float(profile.begins_in_counted(_regions(profile)).sum()) / profile.counted_steps)


def _entering(profile: Profile) -> Bools:
    """The pieces in which compiled code is entered, where a step enters it often and nothing else says why: none where
    a capture knows of the graph breaks."""
    pieces = profile.attribution.pieces
    if profile.variant is not None or _entries(profile) < _MANY_ENTRIES:
        return np.zeros(len(pieces.start), bool)
    return pieces.of("guards") | (pieces.of(*_WRAPS) & blamed_on(profile, _ENTERS))


_ENTERED_PAGE = FindingPage(
    "compiled_code_entered",
    "Compiled code is entered many times a step",
    says="""A step enters at least three compiled regions on the main thread, and checking their guards and preparing
        their inputs takes time. It is reported for bare traces; where a capture or a compile log knows the breaks,
        `graph_breaks` is.""",
    slow="""Each entry checks every guard of the region and prepares its inputs in Python, while the GPU waits. Many
        entries often mean graph breaks: where a function breaks, what follows is a region of its own.""",
    cost="""It claims the time in the bucket `guards`, and that of `dispatch` (on a CPU, `cpu_compute`) which Dynamo
        and the wrappers around compiled graphs take.""",
    limits="""That breaks are the reason is a guess, and marked so: a trace names no break, and functions may be
        compiled apart on purpose.""",
    cures=(
        Cure("Find the breaks (`TORCH_LOGS=graph_breaks`, or `tracekit capture`), and remove them.", "rounding"),
        Cure("Compile one function that calls the others.", "rounding"),
    ),
    links=(_BREAKS,),
)


@rule(
    "entering_compiled_code",
    timed=True,
    own_time=lambda profile: profile.attribution.pieces.union(_entering(profile)),
    pages=(_ENTERED_PAGE,),
)
def entering_compiled_code(profile: Profile) -> Iterator[Finding]:
    """`compiled_code_entered`: what it takes to enter compiled code, in a trace of which no run knows the breaks."""
    is_entering = _entering(profile)
    taking = step_ns_of(profile, is_entering)
    if not taking:
        return
    entries = _entries(profile)
    yield Finding(
        "compiled_code_entered",
        f"{count(entries)} compiled regions are entered a step",
        why=f"Checking their guards and preparing their inputs takes {duration(taking)} a step. That up to "
        f"{many(entries - 1, 'graph break')} a step are why is a guess: a trace names none, and functions may be "
        "compiled apart.",
        do="Find the graph breaks (TORCH_LOGS=graph_breaks, or tracekit capture) and remove them, or compile a single "
        "function that calls the others. This saves at most {saving} a step.",
        where=Where(operator="Torch-Compiled Region"),
        link=_BREAKS,
        claim=profile.attribution.pieces.union(is_entering),
        saved=(entries - 1) / entries,
        evidence=evidence(profile, blamed_events(profile, is_entering)),
        confidence="inferred",
    )


def _time_of_breaks(profile: Profile) -> Union:
    breaks = _break_time(profile)
    return breaks.claim if breaks is not None else NO_TIME


_BREAKS_PAGE = FindingPage(
    "graph_breaks",
    "The graph breaks",
    says="""Dynamo could not go on at a line, ended its graph there, and began another one after it: each place where
        that happened for one reason is a graph break. Reason and line are the compiler's own, from its log. Breaks
        that torch makes by design, as around an optimizer's update, are left out.""",
    slow="""At a break, Python takes over, guards are checked again, inputs of the next graph are prepared, and nothing
        is fused across it. Two graphs also have two backward passes. In PyG, breaks often come from sizes that depend
        on the data: self-loops, `nonzero`, `softmax` and pooling without a number of nodes or graphs.""",
    cost="""It claims what runs between the graphs of functions that break (Python, guards, wrappers), and calling
        each graph but one. Where no compiled region was recorded, it is all Python of a step, and the finding says “at
        most that much”.""",
    limits="""It needs a capture, or `--compile-log`: a trace alone names no break. What fusing across the break would
        save is not in the cost, which is inferred. One break may be met by several compilations.""",
    cures=(
        Cure(
            "Give the layer the size that it reads from the data (`num_nodes`, `size`, `dim_size`, `batch_size`).",
            "rounding",
        ),
        Cure(
            """Add self-loops, and GCN's norm, once before training (`AddSelfLoops`, `GCNNorm`), and construct the
            layer with `normalize=False` or `add_self_loops=False`.""",
            "rounding",
        ),
        Cure("Move printing, `.item()` and other Python out of the compiled function.", "rounding"),
        Cure("Compile with `fullgraph=True`: the first break then raises an error with its line.", "changes nothing"),
    ),
    links=(_BREAKS,),
)
_LIMIT_PAGE = FindingPage(
    "recompile_limit",
    "Compiling was given up at the recompile limit",
    says="""A function was compiled so often that Dynamo gave up, and runs it eagerly from then on. The finding names
        the function and, if the log has it, the guard that failed last.""",
    slow="Every earlier compilation was paid for, and what is left is eager code whose guards are still checked.",
    cost="""It claims the host's time in `python`, `guards`, `dispatch` and `kernel_launch`: at most that much would
        go into compiled code. If only an optimizer gave up, it is the time of guards, where there is any.""",
    limits="""How much of the claimed time compiled code would save is not known, so it is inferred and an upper bound.
        It needs a capture or a compile log.""",
    cures=(
        Cure(
            "Make what changes dynamic (`torch._dynamo.mark_dynamic`, `dynamic=True`), or pass it as a tensor.",
            "rounding",
        ),
        PAD_BATCHES,
        Cure(
            """Raise `torch._dynamo.config.recompile_limit`, if the number of variants is bounded: each is kept in
            memory.""",
            "rounding",
        ),
    ),
    links=("https://docs.pytorch.org/docs/stable/compile/programming_model.recompilation.html",),
)
_SKIPPED_PAGE = FindingPage(
    "cuda_graphs_skipped",
    "A compiled graph is not replayed as a CUDA graph",
    says="""CUDA graphs were asked for (`mode="reduce-overhead"`), but Inductor did not record one for a compiled
        graph, and said why in its log: work on the CPU, inputs that are modified, sizes that vary, operators that
        cannot be captured.""",
    slow="The graph's kernels are launched one by one, by the wrapper that Inductor generated.",
    cost="""It claims the host's time in `python`, `guards`, `dispatch` and `kernel_launch`: at most that much would
        be skipped in a replay.""",
    limits="""An upper bound, and inferred: which part of this time belongs to the graph is not looked up. It needs a
        capture or a compile log. The wording of the reasons is that of torch's log, and differs between versions.""",
    cures=(
        Cure("Keep work on the CPU out of the compiled function, and all inputs on the GPU.", "rounding"),
        Cure("Do not modify inputs in place; copy them into static buffers.", "memory"),
        PAD_BATCHES,
    ),
    links=(_LINK,),
)


@rule("compiled_code", timed=True, own_time=_time_of_breaks, pages=(_BREAKS_PAGE, _LIMIT_PAGE, _SKIPPED_PAGE))
def compiled_code(profile: Profile) -> Iterator[Finding]:
    """`recompile_limit`, `cuda_graphs_skipped`, `graph_breaks`: the host time that whole graphs would save."""
    if profile.variant is None:
        return
    ledger, pieces = profile.variant.ledger, profile.attribution.pieces
    for finding in obstacles(ledger):
        if finding.id == "graph_breaks":
            if (time := _break_time(profile)) is not None:
                yield replace(
                    finding,
                    why=f"{finding.why} The cost is {time.description}.",
                    claim=time.claim,
                    evidence=evidence(profile, blamed_events(profile, time.pieces)),
                )
            continue
        piece_mask = pieces.of(*_OF_THE_HOST)
        if finding.id == "recompile_limit" and all("optim" in Path(limit.file or "").parts for limit in ledger.limits):
            # When an optimizer's compiled step runs is not recorded, but it is seldom most of a step; checking in vain
            # is its.
            guards = pieces.of("guards")
            piece_mask = guards if guards.any() else piece_mask
        yield replace(
            finding,
            evidence=evidence(profile, blamed_events(profile, piece_mask)),
            claim=pieces.union(piece_mask),
            confidence="inferred",  # how much of the time whole graphs would save is not known
        )


_REMAINDERS_PAGE = FindingPage(
    "eager_remainders",
    "Work is left outside of CUDA graphs",
    says="""CUDA graphs are replayed in every step, but between the replays the host makes separate launches, and the
        GPU idles until they arrive.""",
    slow="""A replay needs one call for all of its kernels; what is outside pays for each launch, and for the dispatch
        before it. Mostly it is the optimizer, the loss, or what stands at graph breaks.""",
    cost="""It claims the idle time (launches, dispatch, Python, guards; below a millisecond at a time) that ends with
        a GPU activity which no graph launched.""",
    limits="It is not reported while graphs are still being recorded. Whether the work can be captured is not checked.",
    cures=(
        Cure("Capture the optimizer, too (`capturable=True`), or compile its step.", "rounding"),
        Cure("Remove graph breaks and work on the CPU between the replays.", "rounding"),
        Cure("Capture the whole step with `torch.cuda.graph`, with static inputs.", "memory"),
    ),
    links=(_LINK,),
)


@rule("eager_remainders", timed=True, pages=(_REMAINDERS_PAGE,))
def eager_remainders(profile: Profile) -> Iterator[Finding]:
    """`eager_remainders`, which is not one of `VERDICTS`: the GPU idles until work that no graph holds is submitted."""
    trace, pieces = profile.trace, profile.attribution.pieces
    if not trace.census.any(lambda roles: roles.graph_launch):
        return
    calls = distinct(trace.links.launches).astype(np.int64)
    calls = calls[profile.begins_in_counted(calls)]
    replays = trace.events_at(calls).roles.graph_launch
    eager = calls[~replays]
    # The pieces after which the next GPU activity is one that these calls submitted.
    lasting = trace.dur_ns[trace.links.activities] > 0
    activities, launches = trace.links.activities[lasting], trace.links.launches[lasting]
    following = np.searchsorted(trace.ts_ns[activities], pieces.end)
    has_next = following < len(activities)
    is_eager_wait = pieces.of(*SUBMITTING) & ~is_hole(pieces) & has_next
    is_eager_wait[has_next] &= np.isin(launches[following[has_next]], eager)
    idle, steps = step_ns_of(profile, is_eager_wait), profile.counted_steps
    if not idle or replays.sum() < steps or graphs_recorded(profile) >= OFTEN:
        return
    # The outermost operator under which most of them are made, and the first of those.
    outer = outermost_operators(profile, eager)
    codes = np.where(outer >= 0, trace.name_codes[np.maximum(outer, 0)], trace.name_codes[eager])
    names, first, number = np.unique(codes, return_index=True, return_counts=True)
    operator = plain(trace.names[names[number.argmax()]])
    location = where_of_event(profile, int(eager[first[number.argmax()]]), operator)
    yield Finding(
        "eager_remainders",
        f"Work is left outside of CUDA graphs, most of all {operator}{location.at}",
        why=f"Besides replaying graphs {times(round(replays.sum() / steps))} a step, the host makes "
        f"{many(round(len(eager) / steps), 'separate call')}, and the GPU idles for {duration(idle)} a step waiting "
        "for them.",
        do=f"Move the work between the replays into the graphs: {into_graphs(profile)}. Use a single graph for the "
        "step where possible.",
        where=location,
        evidence=evidence(profile, eager),
        link=_LINK,
        claim=pieces.union(is_eager_wait),
    )
