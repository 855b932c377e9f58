"""What the run's ledger knows of compiled code that does not stay compiled: breaks, limits, graphs not recorded."""

from collections import Counter
from collections.abc import Iterator

from tracekit.findings import Finding, Where, rule
from tracekit.intervals import Union
from tracekit.profile import Profile
from tracekit.units import count

_BREAKS = "https://docs.pytorch.org/docs/stable/compile/programming_model.fix_graph_breaks.html"
_RECOMPILES = "https://docs.pytorch.org/docs/stable/compile/programming_model.recompilation.html"
_TREES = "https://docs.pytorch.org/docs/stable/torch.compiler_cudagraph_trees.html"


@rule("compiled_code")
def compiled_code(profile: Profile) -> Iterator[Finding]:
    """`recompile_limit`, `cuda_graphs_skipped`, `graph_breaks`: the host's time that whole graphs would save."""
    if profile.variant is None or profile.means["wall"] is None:
        return
    ledger, pieces = profile.variant.ledger, profile.cost.pieces
    host = pieces.union(pieces.of("python", "guards", "dispatch", "kernel_launch"))
    between = pieces.union(pieces.of("python", "guards"))
    if ledger.limits:
        limit = ledger.limits[0]
        names = ", ".join(dict.fromkeys(each.name or "a function" for each in ledger.limits))
        said = f"{names} runs eagerly: its recompile limit was reached"
        advice = (
            "Find what changes from call to call and mark it dynamic, or raise torch._dynamo.config.recompile_limit."
        )
        yield _inferred("recompile_limit", said, advice, Where(limit.file, limit.line, limit.name), (host, _RECOMPILES))
    if ledger.skips:
        skip = ledger.skips[0]
        advice = (
            "Keep inputs at one address and of one shape, and what CUDA graphs cannot hold (work on the CPU, changed "
            "inputs) out of the compiled function."
        )
        said = f"No CUDA graph was recorded of {count(len(ledger.skips))} compiled graphs: {skip.reason}"
        yield _inferred("cuda_graphs_skipped", said, advice, Where(skip.file, skip.line), (host, _TREES))
    if ledger.breaks:
        places = Counter((each.file, each.line, each.reason) for each in ledger.breaks)
        (file, line, reason), _ = places.most_common(1)[0]
        said = f"The compiled code breaks at {count(len(places))} place{'s' if len(places) > 1 else ''}: {reason}"
        advice = "Rewrite that line, or move it out of the compiled function (fullgraph=True says where each break is)."
        yield _inferred("graph_breaks", said, advice, Where(file, line), (between, _BREAKS))


def _inferred(name: str, said: str, advice: str, place: Where, of: tuple[Union, str]) -> Finding:
    claim, link = of
    return Finding(name, said, advice=advice, where=place, claim=claim, link=link, confidence="inferred")
