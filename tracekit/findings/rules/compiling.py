"""Does anything compile while steps are measured, and why again?"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tracekit.analyses.compiles import spans_of
from tracekit.findings import Finding, Where, evidence, rule
from tracekit.intervals import Union
from tracekit.profile import Profile
from tracekit.trace import Trace
from tracekit.trace.roles import GRAPH_LAUNCH
from tracekit.units import count, duration

_DYNAMIC = "https://docs.pytorch.org/docs/stable/torch.compiler_dynamic_shapes.html"
_CACHE = "https://docs.pytorch.org/tutorials/recipes/torch_compile_caching_tutorial.html"
_TREES = "https://docs.pytorch.org/docs/stable/torch.compiler_cudagraph_trees.html"
_TUNING = "https://docs.pytorch.org/docs/stable/generated/torch.compile.html"
_SIZE = "size mismatch at index"
_KINDS = {"first": "first compilations", "backward": "of backward passes", "cudagraph": "recordings of CUDA graphs"}
Span = dict[str, Any]  # a row of `compiles.SPANS`


@dataclass(frozen=True)
class _Cause:
    """One reason why something compiles; `id` is that of the finding, and of the verdict."""

    id: str
    of: Callable[[Span, int], bool]  # of a span, and of when all CUDA graphs had been recorded once
    said: Callable[[list[Span]], str]
    advice: Callable[[list[Span]], str]
    link: str


def _recompiled(spans: list[Span]) -> str:
    return f"{_number(spans, 'recompilation')}, the longest of {_of(_longest(spans))}"


def _recorded_again(spans: list[Span]) -> str:
    return f"CUDA graphs are recorded again, {_times(spans)}, after steps that only replayed them"


def _tuned(spans: list[Span]) -> str:
    return f"Kernels are tuned inside steps, {_times(spans)}, for {duration(_longest(spans)['dur_ns'])} at most"


def _compiled(spans: list[Span]) -> str:
    kinds = [each["kind"] for each in spans]
    counted = ", ".join(f"{count(kinds.count(kind))} {_KINDS.get(kind, kind)}" for kind in dict.fromkeys(kinds))
    longest = _longest(spans)
    return f"Compiling ({counted}) goes on inside steps, {duration(longest['dur_ns'])} of it for {_of(longest)}"


def _against_recompiling(spans: list[Span]) -> str:
    if any(_SIZE in reason for reason in _reasons(spans)):
        return "Say that the dimension changes (torch._dynamo.mark_dynamic, or dynamic=True), or pad to a few sizes."
    return (
        "Find what changes from call to call (TORCH_LOGS=recompiles, or tracekit capture), and pass it as a tensor, "
        "mark it dynamic (torch._dynamo.mark_dynamic), or keep it out of the compiled function."
    )


_CAUSES = (
    _Cause("recompiles", lambda span, _: span["kind"] == "recompile", _recompiled, _against_recompiling, _DYNAMIC),
    _Cause(
        "recompiles",
        lambda span, settled: span["kind"] == "cudagraph" and span["start_ns"] > settled,
        _recorded_again,
        lambda spans: (
            "A graph is recorded for each size and for each set of addresses of its inputs: keep both as they "
            "are from step to step (pad to a few sizes, copy into buffers that stay), and mark where a step begins "
            "(torch.compiler.cudagraph_mark_step_begin())."
        ),
        _TREES,
    ),
    _Cause(
        "compile_in_steps",
        lambda span, _: span["kind"] == "autotune",
        _tuned,
        lambda spans: (
            "Kernels are tuned at their first call with a size: run every size once before the steps that "
            'count, keep the cache between runs (TORCHINDUCTOR_CACHE_DIR), or leave tuning out (mode="default").'
        ),
        _TUNING,
    ),
    _Cause(
        "compile_in_steps",
        lambda span, _: True,
        _compiled,
        lambda spans: (
            "Compile before the steps that count: run every shape once, and leave these steps out; keep the "
            "compile cache between runs (TORCHINDUCTOR_CACHE_DIR), so that the next start finds it."
        ),
        _CACHE,
    ),
)


@rule("compiling")
def compiling(profile: Profile) -> Iterator[Finding]:
    """`compile_in_steps` and `recompiles`, by cause, spread over all steps that were recorded."""
    pieces = profile.cost.pieces
    left = pieces.union(pieces.of("compile"))
    if not left.total():
        return
    spans = spans_of(profile)
    settled = _settled(profile.trace, spans)
    for cause in _CAUSES:
        caused = [each for each in spans if cause.of(each, settled)]
        spans = [each for each in spans if not cause.of(each, settled)]
        claim = _covered(caused, left)
        if caused and claim.total():
            left = left.minus(claim)
            yield _finding(profile, cause, caused, claim)


def _finding(profile: Profile, cause: _Cause, spans: list[Span], claim: Union) -> Finding:
    reasons = _reasons(spans)
    because = f", because {reasons[0]}" if reasons else ""
    longest = _longest(spans)
    return Finding(
        cause.id,
        f"{cause.said(spans)}: {duration(claim.total())} of {_over(profile)}{because}",
        advice=cause.advice(spans),
        where=Where(longest.get("file"), longest.get("line"), _of(longest)),
        evidence=evidence(profile, np.array([each["event"] for each in spans], np.int64)),
        link=cause.link,
        claim=claim,
        every_step=True,
    )


def _settled(trace: Trace, spans: list[Span]) -> int:
    """When the first step begins that replays CUDA graphs and records none, ns; later than all else without one.

    A step that records a graph replays it, too, and goes on to record the next.
    """
    rows = [part.rows(part.roles.runtime & part.roles.named(GRAPH_LAUNCH, runtime=True)) for part in trace.parts()]
    starts = np.array([each["start_ns"] for each in spans if each["kind"] == "cudagraph"], np.int64)
    replaying = trace.steps.of(trace.ts_ns[np.concatenate(rows)])
    calm = np.setdiff1d(replaying[replaying >= 0], trace.steps.of(starts))
    return int(trace.steps.issued[calm[0]]) if len(calm) else np.iinfo(np.int64).max


def _covered(spans: list[Span], time: Union) -> Union:
    """What of the time these spans cover."""
    starts = np.array([each["start_ns"] for each in spans], np.int64)
    ends = starts + np.array([each["dur_ns"] for each in spans], np.int64)
    return time.minus(time.minus(Union.of(starts, ends)))


def _longest(spans: list[Span]) -> Span:
    return max(spans, key=lambda each: int(each["dur_ns"]))


def _reasons(spans: list[Span]) -> list[str]:
    return [reason for each in spans if (reason := each.get("guard") or each.get("reason"))]


def _number(spans: list[Span], noun: str) -> str:
    return f"{count(len(spans))} {noun}{'s' if len(spans) > 1 else ''}"


def _times(spans: list[Span]) -> str:
    return "once" if len(spans) == 1 else f"{count(len(spans))} times"


def _over(profile: Profile) -> str:
    view = profile.cost.answered_view
    return f"{duration(int(view.step_ns[view.known].sum()))} that were recorded"


def _of(span: Span) -> str:
    """The function, where it is known, and the compile id."""
    return " ".join(filter(None, (span.get("function"), span["id"]))) or str(span["span"])
