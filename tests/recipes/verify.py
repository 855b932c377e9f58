"""Captures every recipe, and prints the results as a table: `python tests/recipes/verify.py [NAME …]`.

All of them on the CPU with aot_eager, at their tests' sizes; `gcn_cora` and `sage_products` with inductor, too, and
`gat_pubmed` in every mode. It takes half an hour on two cores.
"""

import sys
import tempfile
from pathlib import Path

from tracekit.capture.harness import Options, capture
from tracekit.run import divergence, loss_tolerance

SMALL = {
    "gat_pubmed": {"scale": 0.1},
    "gin_arxiv": {"scale": 0.02},
    "sage_products": {"scale": 0.002, "batch": 64},
    "rgcn_mag": {"scale": 0.002},
    "sage_collab": {"scale": 0.004},
    "distmult_biokg": {"scale": 0.002},
    "gin_molecules": {"scale": 0.2},
    "relational": {"batch": 64, "scale": 0.0005},
    "hetero_parts": {"scale": 0.2},
    "graph_transformer": {"scale": 0.1, "batch": 32},
    "growing_graph": {"nodes": 1000},
}
MODES = (
    "eager",
    "compiled",
    "compiled:dynamic=true",
    "compiled:dynamic=false",
    "reduce-overhead",
    "max-autotune",
    "max-autotune-no-cudagraphs",
    "eager:amp=true",
    "compiled:amp=true",
    "max-autotune:amp=true,dynamic=true",
)
INDUCTOR = {"gcn_cora": (), "sage_products": (), "gat_pubmed": MODES}  # recipe → variants; none: its own
HEAD = "| recipe | variant | compiled / again / breaks | losses | step, ms | eager, ms |\n|---|---|---|---|---|---|"


def main(wanted):
    recipes = Path(__file__).resolve().parents[2] / "recipes"
    files = sorted([*recipes.glob("*.py"), *recipes.glob("pathologies/*.py")])
    chosen = [file for file in files if not wanted or file.stem in wanted]
    print(HEAD, flush=True)
    right = True
    for file in chosen:
        right &= verify(file, "aot_eager")
        if file.stem in INDUCTOR:
            right &= verify(file, "inductor", INDUCTOR[file.stem])
    sys.exit(not right)


def verify(file, backend, variants=()):
    """Capture a recipe and print a line for each variant. True if all of them finished with eager's losses."""
    with tempfile.TemporaryDirectory() as folder:
        run = capture(
            Options(
                file,
                variants=variants,
                params=SMALL.get(file.stem, {}),
                device="cpu",
                backend=backend,
                steps=5,
                warmup=5,
                passes=1,
                out=Path(folder, "run.json"),
                tell=lambda line: print(line, file=sys.stderr, flush=True),
            )
        )
    twins = {settings(each): each for each in run.variants if not each.requested.compile}
    lines = [line(run.recipe, backend, each, twins.get(settings(each))) for each in run.variants]
    print(*(text for text, _ in lines), sep="\n", flush=True)
    return all(fine for _, fine in lines)


def settings(variant):
    return tuple(sorted((name, str(value)) for name, value in variant.params.items()))


def line(recipe, backend, variant, eager):
    ledger = variant.ledger
    places = {(each.compile.partition("/")[0], each.file, each.line) for each in ledger.breaks}
    counts = f"{ledger.graphs} / {ledger.recompiles} / {len(places)}" if variant.requested.compile else "–"
    limit = ", gave up" if ledger.limits else ""
    known = eager is not None and eager is not variant
    agree = same(variant, eager) if known else None
    losses = "–" if agree is None else "same" if agree else "**differ**"
    name = f"{variant.name} ({ran(variant, backend)})" if variant.requested.compile else variant.name
    cells = [recipe, name, counts + limit, losses, milliseconds(variant), milliseconds(eager) if known else "–"]
    return f"| {' | '.join(cells)} |", variant.outcome == "ok" and agree is not False


def ran(variant, backend):
    """The mode in which it ran, if that is not the requested one."""
    mode = variant.effective.mode if variant.effective else None
    asked = variant.requested.mode or "default"
    return backend if mode in (None, backend, asked) else f"{backend}: ran as {mode}"


def same(variant, eager):
    """Whether the losses differ by no more than rounding explains."""
    apart = divergence(eager.losses, variant.losses)
    return apart is not None and apart <= loss_tolerance(eager.loss_drift)


def milliseconds(variant):
    return f"{variant.measured.step_ns / 1e6:.2f}" if variant.measured else variant.outcome


if __name__ == "__main__":
    main(sys.argv[1:])
