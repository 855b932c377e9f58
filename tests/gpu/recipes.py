"""Every recipe, eager: does it run and evaluate here, and how far do its losses move if sums round differently?"""

import os
import time
from pathlib import Path
from typing import Any

from tests.gpu.claims import Claims
from tests.gpu.running import ROOT

_SMALL: dict[str, dict[str, Any]] = {
    "gin_arxiv": {"scale": 0.05},
    "sage_products": {"scale": 0.005},
    "rgcn_mag": {"scale": 0.005},
    "gin_molecules": {"scale": 0.3},
    "sage_collab": {"scale": 0.01},
    "distmult_biokg": {"scale": 0.05},
}
# Sizes that kernels compute are none on a fake GPU, which these cannot do without.
_COUNTED_ON_THE_GPU = ("graph_breaks", "pipeline", "syncs")
_QUICK = ("gcn_cora", "hetero_parts")  # on a CPU


def check(claims: Claims) -> None:
    """Run one after the other in one process: a failure is reported, and the others still run."""
    for path in _all(ROOT / "recipes"):
        if os.environ.get("FAKECUDA") and path.stem in _COUNTED_ON_THE_GPU:
            claims.skip(f"recipe {path.stem}: needs sizes that a kernel computes")
        elif claims.on_gpu or path.stem in _QUICK:
            _check_one(claims, path)


def _all(folder: Path) -> list[Path]:
    return [*sorted(folder.glob("*.py")), *sorted(folder.glob("pathologies/*.py"))]


def _check_one(claims: Claims, path: Path) -> None:
    from tracekit.capture.child.worker import perform
    from tracekit.capture.job import Job

    began = time.monotonic()
    job = Job(stage="check", program=str(path), device=claims.device, params=_SMALL.get(path.stem, {}))
    result = perform(job)
    seen = {"drift": result.loss_drift, "metrics": result.metrics, "s": round(time.monotonic() - began, 1)}
    holds = result.outcome == "ok" and bool(result.losses)
    claims.that(holds, f"recipe {path.stem}: runs and evaluates", **(seen if holds else {"error": result.error}))
