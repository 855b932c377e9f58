"""gcn_cora in every mode, as a user captures it."""

import subprocess
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.gpu.claims import Claims
from tests.gpu.rows import Rows, check_rows
from tests.gpu.running import ROOT, tracekit, variants

# Captured side by side, because compiling takes longest.
_ON_A_GPU = (
    ("eager-norm", "compiled-norm", "reduce-overhead:norm_ahead=true"),
    ("eager-norm", "max-autotune:norm_ahead=true"),
    ("eager", "compiled", "max-autotune-no-cudagraphs:norm_ahead=true"),
)
_ON_A_CPU = (("eager-norm", "compiled-norm"),)
_WITH_GRAPHS = ("reduce-overhead", "max-autotune")
_STEPS = 12
_SECONDS = 270  # and some for the report


def check(claims: Claims) -> None:
    """Capture each group, and report it."""
    groups = _ON_A_GPU if claims.on_gpu else _ON_A_CPU
    with ThreadPoolExecutor(len(groups)) as pool:
        done = [*pool.map(lambda names: _captured(claims, names), groups)]
    for names, (run, capture) in zip(groups, done, strict=True):
        claims.note(capture.stderr[-3000:])
        captured = variants(run)
        claims.that(captured, f"modes: captured {names[-1]}", exit_code=capture.returncode)
        for name in names:
            if name not in captured or captured[name]["outcome"] == "interrupted":
                claims.skip(f"{name}: no time was left for it")
            else:
                _check_variant(claims, run, name, captured[name])
        report = tracekit("report", run, "--rows", 5, seconds=60)
        claims.that(report.returncode == 0, f"modes: {names[-1]} is reported")
        claims.note(report.stdout[-8000:])


def _captured(claims: Claims, names: tuple[str, ...]) -> tuple[Path, subprocess.CompletedProcess[str]]:
    folder = claims.folder / "modes" / names[-1].partition(":")[0]
    folder.mkdir(parents=True, exist_ok=True)
    options = ["--variants", ",".join(names), "--steps", _STEPS, "-o", folder / "run.json"]
    options += ["--device", claims.device, "--passes", 1, "--timeout", claims.seconds(200)]
    options += [] if claims.on_gpu else ["--backend", "aot_eager"]
    recipe = ROOT / "recipes" / "gcn_cora.py"
    return folder / "run.json", tracekit("capture", recipe, *options, seconds=claims.seconds(_SECONDS), folder=folder)


def _check_variant(claims: Claims, run: Path, name: str, variant: dict[str, Any]) -> None:
    claims.that(variant["outcome"] == "ok", f"{name}: captured", error=variant["error"])
    if variant["outcome"] != "ok":
        return
    claims.note(f"{name}: {variant['measured']['step_ns'] / 1e6:.3f} ms, {variant['effective']}, {variant['gpu']}")
    claims.that(variant["losses"], f"{name}: its losses were checked", drift=variant["loss_drift"])
    for window in ("cold", "steady", "detail"):
        path = variant["traces"][window]
        claims.that(path, f"{name}: has a {window} trace")
        if path and claims.on_gpu and not (window == "cold" and name.startswith("max-autotune")):
            check_rows(claims, f"{name} {window}", Rows(run.parent / path))
    if claims.on_gpu:
        memory = variant["memory"]
        claims.that(memory["peak_allocated_bytes"], f"{name}: its memory was measured", **memory)
        claims.that(memory["peak_allocated_bytes"] >= memory["start_allocated_bytes"] > 0, f"{name}: above its start")
        claims.that(memory["split_peak_bytes"] is not None, f"{name}: the allocator's counts were read")
        if name == "eager":
            claims.that(memory["allocated_in_step_bytes"], f"{name}: a step allocates", **memory)
        if name.startswith(_WITH_GRAPHS):
            _check_graphs(claims, run, name, variant)


def _check_graphs(claims: Claims, run: Path, name: str, variant: dict[str, Any]) -> None:
    mode = variant["effective"]["mode"]
    claims.that(mode == name.partition(":")[0], f"{name}: it ran in that mode", mode=mode)
    kinds = Counter(entry["span"] for entry in variant["ledger"]["compiles"])
    claims.that(
        kinds["CUDAGraphNode.record"] or kinds["CUDAGraphTreeManager.record_function"],
        f"{name}: its graphs are in the ledger",
        spans=dict(kinds),
    )
    rows = Rows(run.parent / variant["traces"]["steady"])
    launches = sum(row["name"].startswith("cudaGraphLaunch") for row in rows.calls)
    claims.that(launches >= 2 * _STEPS, f"{name}: forward and backward are replayed in each step", launches=launches)
