"""Does anything compile while steps are measured, and why again?"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from tracekit.analyses.compiles import spans_of
from tracekit.findings import Finding, Where, evidence, rule
from tracekit.intervals import Ints, Union
from tracekit.profile import Profile
from tracekit.units import count, duration

_AGAIN = ("recompile",)
_DYNAMIC = "https://docs.pytorch.org/docs/stable/torch.compiler_dynamic_shapes.html"
_CACHE = "https://docs.pytorch.org/tutorials/recipes/torch_compile_caching_tutorial.html"
_SIZE = "size mismatch at index"


@rule("compiling")
def compiling(profile: Profile) -> Iterator[Finding]:
    """`compile_in_steps` and `recompiles`, spread over all steps that were recorded."""
    pieces = profile.cost.pieces
    if not pieces.of("compile").any():
        return
    spans = spans_of(profile)
    again = [each for each in spans if each["kind"] in _AGAIN]
    time = pieces.union(pieces.of("compile"))
    claim = _covered(again, time)
    if again and claim.total():
        yield _recompiles(profile, again, claim)
    once = [each for each in spans if each["kind"] not in _AGAIN]
    if once and (rest := time.minus(claim)).total():
        yield _compile_in_steps(profile, once, rest)


def _covered(spans: list[dict[str, Any]], time: Union) -> Union:
    """What of the time these spans cover."""
    starts = np.array([each["start_ns"] for each in spans], np.int64)
    ends = starts + np.array([each["dur_ns"] for each in spans], np.int64)
    return time.minus(time.minus(Union.of(starts, ends)))


def _rows(spans: list[dict[str, Any]]) -> Ints:
    return np.array([each["event"] for each in spans], np.int64)


def _compile_in_steps(profile: Profile, spans: list[dict[str, Any]], claim: Union) -> Finding:
    dearest = max(spans, key=lambda each: int(each["dur_ns"]))
    kinds = [each["kind"] for each in spans]
    told = ", ".join(f"{count(kinds.count(kind))} {_KINDS.get(kind, kind)}" for kind in dict.fromkeys(kinds))
    return Finding(
        "compile_in_steps",
        f"{duration(claim.total())} of {_over(profile)} go into compiling ({told}), "
        f"{duration(dearest['dur_ns'])} of that into {_of(dearest)}",
        advice="Compile before the steps that count: run every shape once, and leave these steps out; keep the compile "
        "cache between runs (TORCHINDUCTOR_CACHE_DIR), so that the next start finds it.",
        where=_where(dearest),
        evidence=evidence(profile, _rows(spans)),
        link=_CACHE,
        claim=claim,
        every_step=True,
    )


_KINDS = {"first": "first compilations", "backward": "of backward passes", "cudagraph": "recordings of CUDA graphs"}


def _recompiles(profile: Profile, spans: list[dict[str, Any]], claim: Union) -> Finding:
    dearest = max(spans, key=lambda each: int(each["dur_ns"]))
    reasons = [reason for each in spans if (reason := each.get("guard") or each.get("reason"))]
    because = f", because {reasons[0]}" if reasons else ""
    sizes = any(_SIZE in reason for reason in reasons)
    advice = (
        "Say that the dimension changes (torch._dynamo.mark_dynamic, or dynamic=True), or pad to a few sizes."
        if sizes
        else "Find what changes from call to call (TORCH_LOGS=recompiles, or tracekit capture), and pass it as a "
        "tensor, mark it dynamic (torch._dynamo.mark_dynamic), or keep it out of the compiled function."
    )
    return Finding(
        "recompiles",
        f"{count(len(spans))} recompilation{'s' if len(spans) > 1 else ''}, the longest of {_of(dearest)}: "
        f"{duration(claim.total())} of {_over(profile)}{because}",
        advice=advice,
        where=_where(dearest),
        evidence=evidence(profile, _rows(spans)),
        link=_DYNAMIC,
        claim=claim,
        every_step=True,
    )


def _over(profile: Profile) -> str:
    view = profile.views[profile.cost.pieces.view]
    return f"{duration(int(view.step_ns[view.known].sum()))} that were recorded"


def _of(span: dict[str, Any]) -> str:
    """The function, where it is known, and the compile id."""
    return " ".join(filter(None, (span.get("function"), span["id"]))) or str(span["span"])


def _where(span: dict[str, Any]) -> Where:
    return Where(span.get("file"), span.get("line"), _of(span))
