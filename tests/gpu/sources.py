"""What guides and courses promise of compiled graph networks, beside what is measured here: nothing else may run.

Each line says what was claimed, and the ratio of unprofiled step times with its interval. A claim that does not hold is
a result and no failure: only a capture that fails is.
"""

from pathlib import Path

from tests.gpu.claims import Claims
from tests.gpu.running import ROOT, document, tracekit

# Recipe, its variants, the first of which is compared with; parameters; then what was promised of it.
_CLAIMS: tuple[tuple[str, str, tuple[str, ...], str], ...] = (
    (
        "gcn_cora",
        "eager,compiled,compiled-norm,reduce-overhead:norm_ahead=true",
        ("hidden=128",),
        "GCN on Cora trains 34 % faster compiled",
    ),
    ("pathologies/syncs", "before,after", (), "no waits between host and device, at no cost"),
    (
        "gcn_sampled",
        "baseline,sampled,sampled-amp,baseline-compiled",
        (),
        "sampled in mixed precision is faster than the whole graph, compiled is faster still",
    ),
    (
        "pathologies/pipeline",
        "eager,1-dynamic,3-whole-graph,4-no-cudagraphs,5-no-syncs",
        ("rows=5000",),
        "five steps of a pipeline train 30 to 35 % faster than eager",
    ),
    ("gat_pubmed", "eager,compiled:loops_ahead=true", ("dataset=cora",), "GAT on Cora trains 28 % faster compiled"),
    ("gcn_amp", "fp32,bf16,bf16-compiled", (), "mixed precision is faster"),
    (
        "sage_products",
        "eager,dynamic,padded",
        ("scale=0.02",),
        "GraphSAGE on sampled batches trains 22 % faster compiled",
    ),
)
_BUDGET_S, _PASSES = 4, 3


def check(claims: Claims) -> None:
    """Capture one after the other."""
    for recipe, names, params, promised in _CLAIMS:
        folder = claims.folder / "sources" / Path(recipe).name
        folder.mkdir(parents=True, exist_ok=True)
        run = folder / "run.json"
        given = [text for param in params for text in ("--param", param)]
        options = ["--variants", names, *given, "--passes", _PASSES, "--budget", _BUDGET_S, "--steps", 8]
        options += ["--device", claims.device, "-o", run]
        done = tracekit("capture", ROOT / "recipes" / f"{recipe}.py", *options, seconds=claims.seconds(160))
        claims.that(run.exists() and not done.returncode, f"{recipe}: captured", said=done.stderr[-300:])
        if run.exists():
            claims.note(f"{recipe}, promised: {promised}")
            for line in _seen(run):
                claims.note(f"  {line}")


def _seen(run: Path) -> list[str]:
    lines, told = [], document(run)
    for variant in told["variants"]:
        measured = variant["measured"] or {}
        lines.append(f"{variant['name']}: {(measured.get('step_ns') or 0) / 1e6:.3f} ms ({variant['outcome']})")
    for each in told["comparison"] or []:
        unprofiled = each["unprofiled"] or {}
        lines.append(f"{each['variant']}: ratio {unprofiled.get('ratio')}, {unprofiled.get('interval')}")
    return lines
