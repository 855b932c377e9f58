"""What does the training loop do one by one that one operator could do: gradients zeroed, parameters updated, the same
few operators called again and again, each for a tiny kernel? And is garbage collected in the steps?
"""

import re
from collections.abc import Iterator

import numpy as np
from msgspec import Struct

from tracekit.base.intervals import NO_INTS, Bools, Ints, Union, distinct, runs
from tracekit.base.pages import Cure
from tracekit.base.units import count, duration
from tracekit.engine.buckets import SLOW_HOST
from tracekit.findings import Finding, FindingPage, Where, evidence, rule
from tracekit.findings.culprits import blamed_on, outermost_operators, plain, where_of_buckets, where_of_event
from tracekit.findings.kernels import time_of
from tracekit.findings.one_by_one import TINY_NS, at_once, kernels_of, one_by_one, optimizer_setting
from tracekit.profile import Profile
from tracekit.trace.rows import enclosing

_LEAST_LAUNCHES = 20  # a step, inside the span: as many parameters as make a loop
_ONE_BY_ONE = re.compile(r"Optimizer\.(?:step|zero_grad)#.*", re.DOTALL)
_GARBAGE = re.compile(r"Python GC|<built-in (?:function|method) collect\b.*", re.DOTALL)
_TIMES = 20  # in a row: what is called less often may well be the layers of a model
_MAX_OPERATORS_OF_A_LOOP = 4  # operators in the body of a loop that is recognised
_LINK = "https://docs.pytorch.org/docs/stable/generated/torch.func.vmap.html"


class _Cause(Struct, frozen=True):
    """A span that is known by its name, and what is to be done about it."""

    id: str
    name: re.Pattern[str]
    headline: str
    partly: str  # the same where most launches are not one by one
    advice: str  # where no arguments of an optimizer help
    link: str
    one_by_one: bool  # a fault only where each parameter launches by itself


_HABITS = (
    _Cause(
        "optimizer_loop",
        re.compile(r"Optimizer\.step#.*", re.DOTALL),
        "The optimizer updates parameters one by one",
        "The optimizer updates some parameters one by one",
        "Fuse the updates: compile the optimizer's step (torch.compile(optimizer.step)), or use an optimizer that has "
        "foreach=True.",
        "https://docs.pytorch.org/docs/stable/optim.html",
        True,
    ),
    _Cause(
        "zero_grad",
        re.compile(r"Optimizer\.zero_grad#.*", re.DOTALL),
        "Gradients are set to zero one by one",
        "Some gradients are set to zero one by one",
        "Call zero_grad(set_to_none=True), the default since torch 2.0, which launches nothing.",
        "https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.zero_grad.html",
        True,
    ),
    _Cause(
        "garbage_collection",
        _GARBAGE,
        "Python collects garbage inside steps",
        "",
        "Turn it off in the loop (gc.disable(), gc.freeze()) and collect between epochs, so that it never runs while "
        "the GPU waits.",
        "https://docs.python.org/3/library/gc.html",
        False,
    ),
)


_OPTIMIZER_PAGE = FindingPage(
    "optimizer_loop",
    "The optimizer updates parameters one by one",
    says="Inside the optimizer's `step`, at least 20 launches a step work on a single tensor each.",
    slow="""For each parameter, the host dispatches and launches a handful of tiny kernels; a multi-tensor or fused
        update needs a few launches for all of them. Models with many layers, relations or node types have many small
        parameters.""",
    cost="""It claims the host's time in the optimizer that keeps the GPU waiting, its kernels that take at most 5
        µs, and the usual gaps between those, below 10 µs: what one kernel for all would replace.""",
    limits="""Longer kernels are not claimed: they would take as long in one. Optimizers of other packages may have no
        such argument; compiling the step is the cure then.""",
    cures=(
        Cure("Construct the optimizer with `foreach=True`, which takes memory for temporary lists.", "memory"),
        Cure("Construct it with `fused=True` (Adam, AdamW, SGD).", "rounding"),
        Cure("Compile the optimizer's step: `torch.compile(optimizer.step)`.", "rounding"),
    ),
    links=("https://docs.pytorch.org/docs/stable/optim.html",),
)
_ZERO_PAGE = FindingPage(
    "zero_grad",
    "Gradients are set to zero one by one",
    says="Inside `zero_grad`, at least 20 launches a step set a single gradient to zero each.",
    slow="""Each launch costs the host some microseconds to write zeros that backward then adds to. Without gradients
        to begin with, backward writes them, and nothing has to be launched.""",
    cost="""It claims the host's time in `zero_grad` that keeps the GPU waiting, its kernels that take at most 5 µs,
        and the usual gaps between those.""",
    limits="It is recognised by the profiler's annotation; a loop of your own is reported as `operator_loop`.",
    cures=(
        Cure(
            """Call `zero_grad(set_to_none=True)`, the default since torch 2.0. Code that reads `.grad` must expect
            None, and a parameter that gets no gradient is skipped instead of decayed.""",
            "results",
        ),
    ),
    links=("https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.zero_grad.html",),
)
_GARBAGE_PAGE = FindingPage(
    "garbage_collection",
    "Python collects garbage inside steps",
    says="Python's garbage collector runs inside steps while the GPU idles: by itself, or through `gc.collect()`.",
    slow="""A full collection visits every object of the process, and a program that has imported PyTorch holds very
        many. All launches wait for it.""",
    cost="It claims the GPU's idle time during these collections.",
    limits="""Collections are seen where the trace holds them: as an annotation `Python GC`, or as a frame of
        `gc.collect` where stacks were recorded. Others are part of `python_bound` or `host_freeze`.""",
    cures=(
        Cure(
            """Call `gc.collect()` and `gc.freeze()` before the loop, and `gc.disable()` in it; collect between epochs.
            Tensors in reference cycles live until then.""",
            "memory",
        ),
        Cure("Remove `gc.collect()` from the loop.", "memory"),
    ),
    links=("https://docs.python.org/3/library/gc.html",),
)


@rule(
    "habits",
    timed=True,
    device="gpu",
    own_time=lambda profile: profile.attribution.pieces.union(blamed_on(profile, _GARBAGE)),
    pages=(_OPTIMIZER_PAGE, _ZERO_PAGE, _GARBAGE_PAGE),
)
def habits(profile: Profile) -> Iterator[Finding]:
    """`optimizer_loop`, `zero_grad`, `garbage_collection`: the time in them during which the GPU idles, and that of the
    kernels that a single one would replace."""
    for habit in _HABITS:
        yield from _findings_of(profile, habit)


def _findings_of(profile: Profile, habit: _Cause) -> Iterator[Finding]:
    trace, pieces = profile.trace, profile.attribution.pieces
    if not trace.census.any(lambda roles: roles.host & roles.named(habit.name)):
        return
    spans = trace.where(lambda part: part.process & part.roles.named(habit.name) & part.lasting)
    # How many launch calls of counted steps inside those spans are for a single tensor, and how many there are.
    single = launches = 0
    if habit.one_by_one:
        work, calls = trace.links.activities.astype(np.int64), trace.links.launches.astype(np.int64)
        in_span = enclosing(trace, calls, lambda part: part.among(spans)) >= 0
        in_span[in_span] = profile.begins_in_counted(calls[in_span])
        work, calls = work[in_span], calls[in_span]
        single, launches = len(distinct(calls[~at_once(profile, work, calls)])), len(distinct(calls))
    # A step that was inferred may begin with the first operator inside of a span.
    spans = spans[profile.in_counted(trace.steps.of(trace.events_at(spans).end_ns - 1))]
    if not len(spans) or (habit.one_by_one and single < _LEAST_LAUNCHES * profile.counted_steps):
        return
    span_time = time_of(profile, spans)
    idle = pieces.union(pieces.of(*SLOW_HOST))
    claim, undone = one_by_one(profile, span_time) if habit.one_by_one else (span_time.common(idle), None)
    line, _ = where_of_buckets(profile, "python")
    took = duration(trace.dur_ns[spans].sum() / profile.counted_steps)
    why = f"It takes {took} of the host's time a step."
    if habit.one_by_one:
        number, of_all = (count(round(part / profile.counted_steps)) for part in (single, launches))
        part = "all" if single == launches else f"{number} of them"
        caller = trace.name(spans[0]).partition("#")[0]
        why = f"{caller} makes {of_all} launches a step, {part} for a single tensor each, and takes the host {took}."
    location = Where(operator=trace.name(spans[0])) if habit.one_by_one else line
    arguments = optimizer_setting(profile) if habit.id == "optimizer_loop" else ""
    by_arguments = f"Construct the optimizer with {arguments}: it then updates many parameters in each kernel."
    yield Finding(
        habit.id,
        f"{habit.headline if 2 * single >= launches else habit.partly}{location.at}",
        why=why,
        do=by_arguments if arguments else habit.advice,
        where=location,
        evidence=evidence(profile, spans),
        link=habit.link,
        claim=claim,
        undone=undone,
        host=span_time,
    )


_LOOP_PAGE = FindingPage(
    "operator_loop",
    "Small operators in a row",
    says="""On the main thread, the same one to four operators repeat at least 20 times in a row, and half of their
        kernels take at most 5 µs: a loop over rows, nodes, edge types or heads, where one operator could do all of
        it.""",
    slow="""Each round pays for Python, dispatch and launch, to compute what a single kernel computes in hardly more
        time than one round.""",
    cost="""It claims the host's time in the loop that keeps the GPU waiting, its kernels that take at most 5 µs, and
        the usual gaps between those, below 10 µs.""",
    limits="""A trace cannot tell whether the rounds depend on each other, as in a recurrence: then there is no single
        operator for them. Twenty equal layers in a row look like a loop, too.""",
    cures=(
        Cure(
            "Stack the tensors and call one operator: broadcasting, `bmm`, `index_add_`, `scatter`.",
            "rounding",
        ),
        Cure("Map the function over a batch with `torch.func.vmap`.", "rounding"),
        Cure("Use a `torch._foreach_` function on the list of tensors.", "memory"),
        Cure("Compile the loop, which fuses its rounds if their number is fixed.", "rounding"),
    ),
    links=(_LINK,),
)


@rule("operator_loops", timed=True, device="gpu", pages=(_LOOP_PAGE,))
def operator_loops(profile: Profile) -> Iterator[Finding]:
    """`operator_loop`: the time in such a loop in which the GPU idles, and that of the kernels that a single one would
    replace; one finding for each operator with which a loop begins."""
    trace = profile.trace
    # The outermost operators of the main thread that launch work in counted steps, but not for a habit.
    calls = distinct(trace.links.launches.astype(np.int64))
    calls = calls[(trace.track[calls] == trace.threads.main) & profile.begins_in_counted(calls)]
    calls = calls[enclosing(trace, calls, lambda part: part.roles.host & part.roles.named(_ONE_BY_ONE)) < 0]
    operators = outermost_operators(profile, calls)
    operators = distinct(operators[operators >= 0])
    first, last = _loops(trace.name_codes[operators].astype(np.int64) << 32 | trace.steps.of(trace.ts_ns[operators]))
    starts, ends = trace.ts_ns[operators[first]], trace.events_at(operators[last]).end_ns
    names = trace.name_codes[operators[first]]
    for code in distinct(names).tolist():
        same_name = names == code
        spans = Union.of(starts[same_name], ends[same_name])
        kernels = kernels_of(profile, spans)[0]
        if not len(kernels) or np.median(trace.dur_ns[kernels]) > TINY_NS:
            continue
        rows = operators[spans.covers(trace.ts_ns[operators])]
        claim, undone = one_by_one(profile, spans)
        culprit = where_of_event(profile, int(rows[0]), plain(trace.names[code]))
        yield Finding(
            "operator_loop",
            f"Small operators in a row: {plain(trace.names[code])}{culprit.at}",
            why=f"{count(round(len(rows) / profile.counted_steps))} operators a step repeat each other; half of their "
            f"kernels take at most {duration(float(np.median(trace.dur_ns[kernels])))}.",
            do="Call one operator on a whole tensor instead of many in a loop (torch.stack, broadcasting, index_add_, "
            "torch.func.vmap), or a torch._foreach_ function on a list of tensors.",
            where=culprit,
            evidence=evidence(profile, rows),
            link=_LINK,
            claim=claim,
            undone=undone,
            host=spans,
        )


def _loops(keys: Ints) -> tuple[Ints, Ints]:
    """The first and the last entry of each stretch in which a few keys repeat."""
    firsts, lasts = [NO_INTS], [NO_INTS]
    in_loop: Bools = np.zeros(len(keys), bool)
    for body in range(1, _MAX_OPERATORS_OF_A_LOOP + 1):
        again = (keys[body:] == keys[:-body]) & ~in_loop[body:] & ~in_loop[:-body]
        bounds = runs(again.astype(np.int8))
        begins, ends = bounds[:-1], bounds[1:] + body - 1
        is_loop = again[begins] & (ends - begins + 1 >= _TIMES * body) if len(again) else np.zeros(0, bool)
        firsts.append(begins[is_loop])
        lasts.append(ends[is_loop])
        for begin, end in zip(begins[is_loop].tolist(), ends[is_loop].tolist(), strict=True):
            in_loop[begin : end + 1] = True
    return np.concatenate(firsts), np.concatenate(lasts)
