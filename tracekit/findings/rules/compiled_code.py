"""Which code does not stay compiled: graph breaks, recompile limits, CUDA graphs that were not recorded?"""

from collections import Counter
from collections.abc import Iterator
from typing import Literal, TypedDict

from tracekit.analyses.graph_breaks import is_on_purpose
from tracekit.findings import Evidence, Finding, Where, blamed_events, evidence, rule
from tracekit.findings.breaks import BreakTime, break_time
from tracekit.findings.compiler_advice import against_break, against_guard, guard_of
from tracekit.intervals import Bools, Union
from tracekit.profile import Profile
from tracekit.run import Break, Limit, Skip
from tracekit.units import count, many

_BREAKS = "https://docs.pytorch.org/docs/stable/compile/programming_model.fix_graph_breaks.html"
_RECOMPILES = "https://docs.pytorch.org/docs/stable/compile/programming_model.recompilation.html"
_TREES = "https://docs.pytorch.org/docs/stable/torch.compiler_cudagraph_trees.html"


@rule("compiled_code")
def compiled_code(profile: Profile) -> Iterator[Finding]:
    """`recompile_limit`, `cuda_graphs_skipped`, `graph_breaks`: the host time that whole graphs would save."""
    if profile.variant is None or profile.means["wall"] is None:
        return
    ledger = profile.variant.ledger
    if ledger.limits:
        yield _limit_reached(profile, ledger.limits)
    if ledger.skips:
        yield _graphs_skipped(profile, ledger.skips)
    avoidable = [entry for entry in ledger.breaks if not is_on_purpose(entry)]
    if avoidable and (time := break_time(profile)) is not None:
        yield _breaks(profile, avoidable, time)


def _limit_reached(profile: Profile, limits: list[Limit]) -> Finding:
    names = [*dict.fromkeys(each.name or "a function" for each in limits)]
    and_more = f" and {count(len(names) - 1)} more" if len(names) > 1 else ""
    where = Where(limits[0].file, limits[0].line, limits[0].name)
    reason = limits[0].reason or ""
    advice = against_guard(reason) or "Find out what changes from call to call and mark it dynamic"
    return Finding(
        "recompile_limit",
        f"Recompile limit reached{where.at}: {names[0]}{and_more} run{'' if and_more else 's'} eagerly",
        why=f"The guard that failed last: {guard_of(reason)}." if reason else "",
        do=f"{advice.rstrip('.')}; or raise torch._dynamo.config.recompile_limit.",
        where=where,
        link=_RECOMPILES,
        **_inferred(profile, profile.attribution.pieces.of("python", "guards", "dispatch", "kernel_launch")),
    )


def _graphs_skipped(profile: Profile, skips: list[Skip]) -> Finding:
    where = Where(skips[0].file, skips[0].line)
    graphs = "One compiled graph is" if len(skips) == 1 else f"{count(len(skips))} compiled graphs are"
    return Finding(
        "cuda_graphs_skipped",
        f"{graphs} not replayed as CUDA graph{'' if len(skips) == 1 else 's'}{where.at}",
        why=f"{'The reason' if len(skips) == 1 else 'The first reason'}: {skips[0].reason}.",
        do="Keep the addresses and shapes of inputs fixed, and keep what CUDA graphs cannot hold (work on the CPU, "
        "inputs that are modified) out of the compiled function.",
        where=where,
        link=_TREES,
        **_inferred(profile, profile.attribution.pieces.of("python", "guards", "dispatch", "kernel_launch")),
    )


def _breaks(profile: Profile, breaks: list[Break], time: BreakTime) -> Finding:
    places = Counter((each.file, each.line, each.reason) for each in breaks)
    (file, line, reason), _ = places.most_common(1)[0]
    first = next(entry for entry in breaks if (entry.file, entry.line, entry.reason) == (file, line, reason))
    advice = against_break(first) or (
        "Rewrite that line or, if it is in a library, move the call that leads there out of the compiled function (the "
        "section on graph breaks has your lines; with fullgraph=True the first break raises an error)."
    )
    where = Where(file, line)
    most = "" if len(places) == 1 else f" in {count(len(places))} places{', most often' if where.at else ''}"
    often = "" if len(places) == 1 else "The most frequent reason: "
    return Finding(
        "graph_breaks",
        f"{many(len(breaks), 'graph break')}{most}{where.at}",
        why=f"{often}{reason.rstrip('.')}. The cost is {time.said}.",
        do=advice,
        where=where,
        link=_BREAKS,
        claim=time.claim,
        evidence=evidence(profile, blamed_events(profile, time.pieces)),
        confidence="inferred",
    )


class _Inferred(TypedDict):
    claim: Union
    evidence: tuple[Evidence, ...]
    confidence: Literal["inferred"]


def _inferred(profile: Profile, chosen: Bools) -> _Inferred:
    """The time of these pieces; how much of it whole graphs would save is not known."""
    events = evidence(profile, blamed_events(profile, chosen))
    return {"claim": profile.attribution.pieces.union(chosen), "evidence": events, "confidence": "inferred"}
