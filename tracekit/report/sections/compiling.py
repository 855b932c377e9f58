"""Why did compiling help, or why did it not?"""

from collections.abc import Iterator

from tracekit.compare import Comparison
from tracekit.engine.buckets import BUCKETS
from tracekit.gnn.changing_sizes import changed_sizes
from tracekit.profile import LEAST_SHARE, Profile
from tracekit.report.blocks import Sentences
from tracekit.report.compile_effects import Effects, Side, effects
from tracekit.report.model import Report
from tracekit.report.registry import of_comparison
from tracekit.report.section import Contents
from tracekit.run.backends import DEFAULT
from tracekit.run_facts import break_even_doubt, break_even_steps
from tracekit.sanitize import sanitize
from tracekit.units import count, duration, many, percent, ratio
from tracekit.unprofiled import compiling_cost

_GAIN = 0.9  # of the eager step: a gain of less than a tenth needs a reason
_MANY = 0.05  # of the steps that compile: above this share, they are not just a warm-up
_LEFT = {
    "products": "matrix products and convolutions",
    "syncs": "sync stalls",
    "data": "waiting for data",
    "communication": "communication",
    "copies": "copies",
    "work": "other computing",
}
_WITH_GRAPHS = ("reduce-overhead", "max-autotune")  # modes in which Inductor records CUDA graphs


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
    step_ratio, noise = seen.step_ratio
    a_step = "In one pass each, a step" if seen.lone_passes else "A step"
    if seen.unchanged:
        return f"{a_step} takes as long as before,{' within noise,' if noise else ''}"
    if step_ratio >= 2:
        return f"{a_step} takes {ratio(step_ratio)} as long as before,"
    return f"{a_step} becomes {percent(abs(1 - step_ratio))} {'shorter' if step_ratio < 1 else 'longer'}"


def _reason(seen: Effects) -> str:
    """The first of the reasons that holds."""
    compiling, steps = seen.compiling_steps
    limits = [*dict.fromkeys(sanitize(each.name or "a frame") for each in seen.ledger.limits)]
    if seen.variant.effective.ran_eagerly:
        return f"because nothing was compiled: {sanitize(seen.variant.effective.ran_eagerly)}"
    if steps and compiling > _MANY * steps:
        which = "each step compiles" if compiling == steps else f"{compiling} of {steps} steps compile"
        return f"because {which} again{_guard(seen)}"
    if limits and not _gained(seen):
        return f"because {', '.join(limits[:3])} reached the recompile limit and ran eagerly from then on{_guard(seen)}"
    if seen.traces_disagree:
        change = seen.compiled.step_ns / seen.eager.step_ns - 1
        which = f"{percent(abs(change))} {'longer' if change > 0 else 'shorter'}"
        return f"but its traced steps, which became {which}, do not show why"
    return _saved(seen) if _gained(seen) else _bound(seen)


def _gained(seen: Effects) -> bool:
    step_ratio, noise = seen.step_ratio
    return step_ratio < _GAIN and not noise


def _guard(seen: Effects) -> str:
    """The guard that failed most often, and which property of the graph it checks."""
    if seen.guard is None:
        return ""
    sizes = [each.what for each in changed_sizes(seen.variant) if each.what]
    of_graph = f": the number of {sanitize(sizes[0])}" if sizes else ""
    return f" (guard {sanitize(seen.guard, 120)}{of_graph})"


def _bound(seen: Effects) -> str:
    """What takes most of the compiled step, and why compiling does not change that."""
    bounds = seen.compiled.bounds
    if not bounds:
        return "and its traced steps cannot say why: their wall time is unknown"
    name = max(bounds, key=lambda each: bounds[each])
    share = percent(bounds[name])
    if name == "host":
        return f"because {_waiting(seen.compiled, share)}: {_host(seen)}"
    return (
        "because "
        + {
            "products": f"{share} of a step is matrix products and convolutions"
            f"{', which compiling leaves as they are' if seen.backend is not None else ''}",
            "work": f"{share} of a step is {_other_work(seen)}",
            "syncs": f"{share} of a step is lost to syncs, which compiling does not remove",
            "data": f"{share} of a step is waiting for data, which compiling does not change",
            "communication": f"{share} of a step is communication that nothing overlaps; compiling does not change it",
            "copies": f"{share} of a step is copies that nothing overlaps; compiling does not change them",
            "compiling": f"{share} of a step is compiling",
        }[name]
    )


def _waiting(side: Side, share: str) -> str:
    if side.has_gpu:
        return f"the GPU still spends {share} of a step waiting for the host"
    return f"Python and what it calls still take {share} of a step"


def _host(seen: Effects) -> str:
    skips, launches = seen.ledger.skips, seen.compiled.launches
    if skips:
        why = sanitize(skips[0].reason or "", 120)
        return f"CUDA graphs were not recorded ({why})" if why else "CUDA graphs were not recorded"
    calls = f"{count(launches)} launch calls a step" if launches is not None else "its calls"
    if seen.ledger.breaks:
        return f"{many(len(seen.ledger.breaks), 'graph break')} leave {calls} and Python in between"
    if not seen.compiled.has_gpu:
        return "what surrounds the compiled code is not compiled"
    backend, mode = seen.backend, seen.variant.requested.mode
    if backend is not None and not backend.cuda_graphs:
        return f"{calls} are left, because {backend.name} neither fuses operators nor records CUDA graphs"
    if seen.backend_name != DEFAULT or mode in _WITH_GRAPHS:
        return f"{calls} are left"
    return f"{calls} are left, which CUDA graphs (mode='reduce-overhead') would replay as one"


def _other_work(seen: Effects) -> str:
    """Computing other than matrix products: what fusing can shorten, and what came of it.

    Only a backend that fuses, and whose generated kernels are in the trace, is said to have saved it by fusing.
    """
    sides = (seen.eager, seen.compiled)
    key = "gpu_compute" if seen.compiled.has_gpu else "cpu_compute"
    before, after = (side.parts.get(key, 0.0) - side.bounds.get("products", 0.0) * side.step_ns for side in sides)
    kind = "other GPU work" if seen.compiled.has_gpu else "other CPU work"
    if seen.backend is not None and not seen.backend.fuses:
        return f"{kind}, which {seen.backend.name} does not fuse"
    fused = seen.backend is not None and seen.compiled.has_fused
    if after > 1.05 * before:
        return f"{kind}, which takes {duration(after - before)} more than in eager{_made_up(seen, after - before)}"
    if after >= 0.95 * before:
        return f"{kind}, of which fusing saved nothing" if fused else f"{kind}, which takes as long as in eager"
    saved = duration(before - after)
    less = f"of which fusing saved {saved}" if fused else f"which takes {saved} less than in eager"
    return f"{kind}, {less}{_made_up(seen, after - before)}"


def _made_up(seen: Effects, change: float) -> str:
    """Why a step takes as long as before although its work changed by that much, ns; empty if it does not."""
    if not seen.unchanged:
        return ""
    traced = seen.compiled.step_ns - seen.eager.step_ns
    if traced * change > 0 and abs(traced) > abs(change) / 2:
        return " in these traces, which the passes without the profiler do not confirm"
    ours, theirs = seen.compiled.parts, seen.eager.parts
    opposite = {key: ours.get(key, 0.0) - theirs.get(key, 0.0) for key in theirs}
    key = max(opposite, key=lambda each: -opposite[each] if change > 0 else opposite[each])
    verb = "saves" if change > 0 else "costs"
    return f", while {BUCKETS[key].noun} {verb} {duration(abs(opposite[key]))}" if opposite[key] * change < 0 else ""


def _saved(seen: Effects) -> str:
    """The buckets that became smaller, the largest first."""
    ours, theirs = seen.compiled.parts, seen.eager.parts
    saved = {key: theirs.get(key, 0.0) - ours.get(key, 0.0) for key in theirs}
    total = sum(ns for ns in saved.values() if ns > 0)
    largest = sorted((key for key, ns in saved.items() if ns > 0.1 * total), key=lambda key: -saved[key])
    if not largest:
        return "and its traced steps do not show where"
    named = [f"{BUCKETS[key].noun} ({duration(-saved[key], signed=True)})" for key in largest[:3]]
    return f"because it spends less on {_and(named)}"


def _facts(seen: Effects) -> Iterator[str]:
    yield _compiled(seen)
    yield from _most_to_gain(seen)
    yield from _launches(seen)
    yield from _work(seen)
    if seen.guards_ns:
        share = seen.guards_ns / seen.compiled.step_ns if seen.compiled.step_ns else None
        yield f"Checking guards takes {duration(seen.guards_ns)} a step{f' ({percent(share)})' if share else ''}."
    yield from _cost(seen)


def _compiled(seen: Effects) -> str:
    clauses = [
        many(seen.ledger.graphs, "graph"),
        many(seen.ledger.recompiles, "recompilation"),
        many(len(seen.ledger.breaks), "graph break"),
    ]
    if seen.ledger.limits:
        clauses.append(f"{many(len(seen.ledger.limits), 'function')} given up at the recompile limit")
    if seen.ledger.skips:
        clauses.append(f"{many(len(seen.ledger.skips), 'CUDA graph')} not recorded")
    return f"Compiling resulted in {_and(clauses)}."


def _most_to_gain(seen: Effects) -> Iterator[str]:
    """How much of the eager step compiling cannot speed up, and what that leaves to gain."""
    shares = seen.left_as_it_is
    most = seen.most_to_gain
    if most is None or sum(shares.values()) < LEAST_SHARE:
        return
    named = {_LEFT[name]: share for name, share in shares.items() if share >= LEAST_SHARE}
    each = [f"{percent(share)} {name}" for name, share in named.items()] if len(named) > 1 else [*named]
    untouched = f" ({_and(each)})" if named else ""
    yield (
        f"{_whose(seen)} can do nothing about {percent(sum(shares.values()))} of the eager step{untouched}, so it "
        f"could make the step at most {ratio(most)} faster."
    )


def _whose(seen: Effects) -> str:
    return "Compiling" if seen.backend_name == DEFAULT else f"Compiling with {seen.backend_name}"


def _launches(seen: Effects) -> Iterator[str]:
    before, after = seen.eager.launches, seen.compiled.launches
    if before is not None and after is not None:
        waits = seen.compiled.bounds.get("host", 0.0)
        still = (
            f"; the GPU still spends {percent(waits)} of a step waiting for the host" if waits >= LEAST_SHARE else ""
        )
        yield f"Launch calls a step: {count(before)} eager, {count(after)} compiled{still}."


def _work(seen: Effects) -> Iterator[str]:
    """How the time of each kind of work changed; on a CPU, compiled code counts as one kind, whatever it contains."""
    if not seen.eager.has_gpu or not seen.eager.work_ns:
        return
    kinds = {
        "matrix products and convolutions": (seen.eager.products_ns, seen.compiled.products_ns),
        "gathering and scattering": (seen.eager.rows_ns, seen.compiled.rows_ns),
        "what can be fused": (seen.eager.fusible_ns, seen.compiled.fusible_ns),
    }
    named = [
        f"{kind} {duration(before)} → {duration(after)}" for kind, (before, after) in kinds.items() if before or after
    ]
    if named:
        yield f"GPU time a step: {', '.join(named)}."


def _cost(seen: Effects) -> Iterator[str]:
    cost = compiling_cost(seen.variant)
    steps = break_even_steps(seen.compiled.profile, seen.eager.profile)
    if not cost:
        return
    if steps is None:
        doubt = break_even_doubt(seen.compiled.profile, seen.eager.profile)
        yield f"Compiling cost {cost}; whether it pays off is unknown: {doubt}."
    elif steps == float("inf"):
        yield f"Compiling cost {cost}, which never pays off."
    else:
        yield f"Compiling cost {cost}: it breaks even after {count(round(steps))} steps."


def _and(items: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(items[:-1]), items[-1])))
