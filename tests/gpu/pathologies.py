"""Every pathology and its cure, captured: is the cause what the report says first of it, and gone with the cure?"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.gpu.claims import Claims
from tests.gpu.running import ROOT, findings, tracekit, variants

_AT_ONCE = 4
_SECONDS = 240


@dataclass(frozen=True)
class Pathology:
    """A recipe, its variant with the cause and that with the cure, and the findings that name the cause, or what a
    finding says that has it as a part; what may cost more than the cause; whether it acts only while code compiles."""

    recipe: str
    before: str
    after: str
    named: frozenset[str]
    part: str = ""
    costlier: frozenset[str] = frozenset()
    only_compiling: bool = False
    params: tuple[str, ...] = ()


_COMPILING = frozenset({"compile_in_steps", "recompile_limit", "recompilations"})
_PATHOLOGIES = (
    # With fewer nodes, the host is behind the GPU in any case, and waits cost nothing.
    Pathology("syncs", "before", "after", frozenset({"sync_stall"}), params=("nodes=200000",)),
    Pathology("self_loops", "before", "after", frozenset({"graph_breaks", "sync_stall"}), "graph break"),
    Pathology("graph_breaks", "before", "after", frozenset({"graph_breaks", "sync_stall"}), "graph break"),
    Pathology("shapes", "before", "dynamic", _COMPILING),
    Pathology("float_lr", "before", "after", _COMPILING, "recompile limit"),
    Pathology("int_attribute", "before", "after", _COMPILING),
    Pathology("edge_types", "before", "after", _COMPILING, only_compiling=True),
    # Its batches are made in the training process.
    Pathology(
        "cuda_graphs",
        "before",
        "padded",
        _COMPILING | {"graphs_recorded", "graphs_prepared"},
        costlier=frozenset({"dataloader_bound"}),
    ),
)


def check(claims: Claims) -> None:
    """Capture several at a time, because compiling takes longer than anything else."""
    folder = claims.folder / "pathologies"
    folder.mkdir(parents=True, exist_ok=True)
    wanted = [each for each in _PATHOLOGIES if not claims.recipes or each.recipe in claims.recipes]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        runs = pool.map(lambda pathology: _captured(claims, folder, pathology), wanted)
        for pathology, run in zip(wanted, runs, strict=True):  # as soon as it is there: time may run out
            _check_one(claims, pathology, run)


def _captured(claims: Claims, folder: Path, pathology: Pathology) -> Path:
    run = folder / pathology.recipe / "run.json"
    run.parent.mkdir(exist_ok=True)
    recipe = ROOT / "recipes" / "pathologies" / f"{pathology.recipe}.py"
    names = f"{pathology.before},{pathology.after}"
    options = [option for param in pathology.params for option in ("--param", param)]
    options += ["--steps", 8, "--passes", 1, "--timeout", claims.seconds(150), "--device", claims.device, "-o", run]
    done = tracekit(
        "capture", recipe, "--variants", names, *options, seconds=claims.seconds(_SECONDS), folder=run.parent
    )
    if done.returncode:
        claims.note(f"{pathology.recipe}: {done.stderr[-1500:]}")
    return run


def _check_one(claims: Claims, pathology: Pathology, run: Path) -> None:
    name, captured = pathology.recipe, variants(run)
    ended = {each: captured[each]["outcome"] for each in captured}
    claims.that(ended == {pathology.before: "ok", pathology.after: "ok"}, f"{name}: captured", outcomes=ended)
    if not captured:
        return
    found = findings(run)
    before, after = ([_told(each) for each in found if each["variant"] == one] for one in list(captured)[:2])
    if pathology.only_compiling:
        compiles = {each: captured[each]["measured"]["compiles"] for each in ended}
        fewer = compiles[pathology.after] < compiles[pathology.before]
        claims.that(fewer, f"{name}: less is compiled with its cure", compiles=compiles)
    else:
        of_before = (each for each in found if each["variant"] == pathology.before)
        no_finding = {"id": None, "also": []}
        first = next((each for each in of_before if each["id"] not in pathology.costlier), no_finding)
        has_part = pathology.part and any(pathology.part in each for each in first["also"])
        claims.that(first["id"] in pathology.named or has_part, f"{name}: its cause is found first", first=before[:1])
    left = {each["id"] for each in found if each["variant"] == pathology.after} & pathology.named
    claims.that(not left, f"{name}: and gone with its cure", left=sorted(left))
    for each in (*before[:4], "– cured:", *after[:2]):
        claims.note(f"{name}: {each}")


def _told(finding: dict[str, Any]) -> str:
    return f"{finding['id']} {(finding['share'] or 0):.0%}: {finding['title']}"
