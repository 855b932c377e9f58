"""Why did compiling help, or why did it not?"""

from collections.abc import Iterator

from tracekit.compare import Comparison
from tracekit.profile import Profile
from tracekit.report.blocks import Sentences
from tracekit.report.compile_effects import Effects, effects
from tracekit.report.model import Report
from tracekit.report.registry import of_comparison
from tracekit.report.section import Contents
from tracekit.sanitize import sanitize
from tracekit.units import count, duration, percent

_GAIN = 0.9  # of the eager step: less than a tenth gained asks for a reason
_MANY = 0.05  # of the steps that compile: more is no start-up any more
_NOUNS = {
    "kernel_launch": "launches",
    "dispatch": "dispatch",
    "python": "Python",
    "sync_stall": "sync stalls",
    "gpu_compute": "GPU compute",
    "gpu_gap": "gaps on the GPU",
    "gpu_copy": "copies",
    "cpu_compute": "CPU compute",
}


@of_comparison("compiling", "What compiling changed", rank=5)
def compiling(report: Report, entry: Comparison) -> Contents | None:
    """The reason first, and then what it rests on."""
    compiled, baseline = report.member(entry.variant), report.member(entry.baseline)
    if not isinstance(compiled, Profile) or not isinstance(baseline, Profile):
        return None
    seen = effects(compiled, baseline)
    if seen is None:
        return None
    return Contents((Sentences((f"{_gain(seen)} {_reason(seen)}. {' '.join(_facts(seen))}",)),), worth=1.0)


def _gain(seen: Effects) -> str:
    ratio, noise = seen.pace
    if noise or 0.995 < ratio < 1.005:
        return f"A step does not become shorter{' beyond noise' if noise else ''}"
    return f"A step becomes {percent(abs(1 - ratio))} {'shorter' if ratio < 1 else 'longer'}"


def _reason(seen: Effects) -> str:
    """The first of the reasons that holds."""
    compiling, recorded = seen.compiling_steps
    guard = f" (guard {sanitize(seen.guard, 120)})" if seen.guard else ""
    limits = [*dict.fromkeys(sanitize(each.name or "a frame") for each in seen.ledger.limits)]
    if seen.variant.effective.ran_eagerly:
        return f"because nothing was compiled: {sanitize(seen.variant.effective.ran_eagerly)}"
    if recorded and compiling > _MANY * recorded:
        which = "each step compiles" if compiling == recorded else f"{compiling} of {recorded} steps compile"
        return f"because {which} again{guard}"
    if limits and not _gained(seen):
        return f"because {', '.join(limits[:3])} reached the recompile limit and runs eagerly since{guard}"
    return _bound(seen) if not _gained(seen) else _saved(seen)


def _gained(seen: Effects) -> bool:
    ratio, noise = seen.pace
    return ratio < _GAIN and not noise


def _bound(seen: Effects) -> str:
    """What most of the compiled step is, and why compiling leaves it."""
    bounds = seen.compiled.bounds()
    if not bounds:
        return "and its steps cannot be answered, so that nobody can say why"
    name = max(bounds, key=lambda each: bounds[each])
    share = percent(bounds[name])
    if name == "host":
        return f"because the GPU still waits for the host {share} of a step: {_host(seen)}"
    return (
        "because "
        + {
            "products": f"{share} of a step is matrix products and convolutions, which it leaves as they are",
            "gpu": f"{share} of a step is other work of the GPU, {_fusing(seen)}",
            "syncs": f"{share} of a step is lost to syncs, which it does not remove",
            "data": f"{share} of a step is waiting for data, which it does not touch",
            "communication": f"{share} of a step is communication that nothing hides, which it does not touch",
            "cpu": f"{share} of a step is computing on the CPU, {_computing(seen)}",
            "compiling": f"{share} of a step is compiling",
        }[name]
    )


def _host(seen: Effects) -> str:
    skips, launches = seen.ledger.skips, seen.compiled.launches
    if skips:
        why = sanitize(skips[0].reason or "", 120)
        return f"CUDA graphs were not recorded ({why})" if why else "CUDA graphs were not recorded"
    calls = f"{count(launches)} launch calls a step" if launches is not None else "its launch calls"
    if seen.ledger.breaks:
        return f"{_plural(len(seen.ledger.breaks), 'graph break')} leave {calls} and Python in between"
    return f"{calls} are left, which CUDA graphs (mode='reduce-overhead') would replay as one"


def _fusing(seen: Effects) -> str:
    before, after = seen.eager.fusible_ns, seen.compiled.fusible_ns
    if after < 0.95 * before:
        return f"of which fusing saved {duration(before - after)}"
    return "of which fusing saved nothing"


def _computing(seen: Effects) -> str:
    before, after = (side.parts.get("cpu_compute", 0.0) for side in (seen.eager, seen.compiled))
    if after < 0.95 * before:
        return f"of which it saved {duration(before - after)}"
    return "of which it saved nothing"


def _saved(seen: Effects) -> str:
    """The buckets that became smaller, the largest first."""
    ours, theirs = seen.compiled.parts, seen.eager.parts
    saved = {key: theirs.get(key, 0.0) - ours.get(key, 0.0) for key in _NOUNS}
    total = sum(ns for ns in saved.values() if ns > 0)
    largest = sorted((key for key, ns in saved.items() if ns > 0.1 * total), key=lambda key: -saved[key])
    if not largest:
        return "and its traced steps do not show where"
    named = [f"{_NOUNS[key]} ({duration(-saved[key], signed=True)})" for key in largest[:3]]
    return f"because it spends less on {_and(named)}"


def _facts(seen: Effects) -> Iterator[str]:
    yield _compiled(seen)
    before, after = seen.eager.launches, seen.compiled.launches
    if before is not None and after is not None:
        yield f"Launch calls a step: {count(before)} eager, {count(after)} compiled."
    if seen.guards_ns:
        share = seen.guards_ns / seen.compiled.step_ns if seen.compiled.step_ns else 0.0
        yield f"Checking guards takes {duration(seen.guards_ns)} a step ({percent(share)})."
    if seen.eager.gpu_ns:
        yield (
            f"Of the GPU's work, matrix products and convolutions go from {duration(seen.eager.products_ns)} to "
            f"{duration(seen.compiled.products_ns)}, what can be fused from {duration(seen.eager.fusible_ns)} to "
            f"{duration(seen.compiled.fusible_ns)}."
        )


def _compiled(seen: Effects) -> str:
    clauses = [
        _plural(seen.graphs, "graph"),
        _plural(seen.recompiles, "recompilation"),
        _plural(len(seen.ledger.breaks), "graph break"),
    ]
    if seen.ledger.limits:
        clauses.append(f"{_plural(len(seen.ledger.limits), 'function')} given up at the recompile limit")
    if seen.ledger.skips:
        clauses.append(f"{_plural(len(seen.ledger.skips), 'CUDA graph')} not recorded")
    return f"{', '.join(clauses)}."


def _and(items: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(items[:-1]), items[-1])))


def _plural(number: int, noun: str) -> str:
    return f"{count(number)} {noun}{'s' * (number != 1)}"
