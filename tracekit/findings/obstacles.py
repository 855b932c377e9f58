"""What kept the compiler from compiling all of a step, by its own ledger: recompile limits, CUDA graphs that it did not
record, graph breaks. Findings without a cost: what they cost, a trace tells.
"""

from tracekit.analyses.compiled_code import is_on_purpose
from tracekit.base.units import count, many
from tracekit.findings.compiler_advice import against_break, against_guard, guard_of
from tracekit.findings.finding import Finding, Where
from tracekit.run import Break, Ledger, Limit, Skip

_BREAKS = "https://docs.pytorch.org/docs/stable/compile/programming_model.fix_graph_breaks.html"
_RECOMPILES = "https://docs.pytorch.org/docs/stable/compile/programming_model.recompilation.html"
_TREES = "https://docs.pytorch.org/docs/stable/torch.compiler_cudagraph_trees.html"


def obstacles(ledger: Ledger) -> list[Finding]:
    """One of each kind that there is; breaks on purpose are none."""
    findings = [_limit_reached(ledger.limits)] if ledger.limits else []
    findings += [_graphs_skipped(ledger.skips)] if ledger.skips else []
    avoidable = [entry for entry in ledger.breaks if not is_on_purpose(entry)]
    return [*findings, _breaks(avoidable)] if avoidable else findings


def _limit_reached(limits: list[Limit]) -> Finding:
    names = [*dict.fromkeys(limit.name or "a function" for limit in limits)]
    and_more = f" and {count(len(names) - 1)} more" if len(names) > 1 else ""
    location = Where(limits[0].file, limits[0].line, limits[0].name)
    reason = limits[0].reason or ""
    advice = against_guard(reason) or "Find out what changes from call to call and mark it dynamic"
    return Finding(
        "recompile_limit",
        f"Recompile limit reached{location.at}: {names[0]}{and_more} run{'' if and_more else 's'} eagerly",
        why=f"The guard that failed last: {guard_of(reason)}." if reason else "",
        do=f"{advice.rstrip('.')}; or raise torch._dynamo.config.recompile_limit.",
        where=location,
        link=_RECOMPILES,
    )


def _graphs_skipped(skips: list[Skip]) -> Finding:
    location = Where(skips[0].file, skips[0].line)
    graphs = "One compiled graph is" if len(skips) == 1 else f"{count(len(skips))} compiled graphs are"
    return Finding(
        "cuda_graphs_skipped",
        f"{graphs} not replayed as CUDA graph{'' if len(skips) == 1 else 's'}{location.at}",
        why=f"{'The reason' if len(skips) == 1 else 'The first reason'}: {skips[0].reason}.",
        do="Keep the addresses and shapes of inputs fixed, and keep what CUDA graphs cannot hold (work on the CPU, "
        "inputs that are modified) out of the compiled function.",
        where=location,
        link=_TREES,
    )


def _breaks(breaks: list[Break]) -> Finding:
    by_place: dict[tuple[str | None, int | None, str], list[Break]] = {}
    for graph_break in breaks:
        by_place.setdefault((graph_break.file, graph_break.line, graph_break.reason), []).append(graph_break)
    first = max(by_place.values(), key=len)[0]
    advice = against_break(first) or (
        "Rewrite that line or, if it is in a library, move the call that leads there out of the compiled function (the "
        "section on graph breaks has your lines; with fullgraph=True the first break raises an error)."
    )
    location, is_alone = Where(first.file, first.line), len(by_place) == 1
    most_often = "" if is_alone or not location.at else ", most often"
    often = "" if is_alone else "The most frequent reason: "
    met = f" {'It is' if is_alone else 'They are'} met by {count(len(breaks))} compilations."
    return Finding(
        "graph_breaks",
        f"{many(len(by_place), 'graph break')}{most_often}{location.at}",
        why=f"{often}{first.reason.rstrip('.')}.{met if len(breaks) > len(by_place) else ''}",
        do=advice,
        where=location,
        link=_BREAKS,
        confidence="inferred",
    )
