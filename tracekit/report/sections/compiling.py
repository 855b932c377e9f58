"""Why did compiling help, or why did it not? What it changed, what holds the compiled step back, and the words for
that.
"""

import re
from collections import Counter
from collections.abc import Iterator
from functools import cached_property

from msgspec import Struct

from tracekit.analyses import summary
from tracekit.base.names import sanitize
from tracekit.base.units import count, duration, many, percent, ratio
from tracekit.engine.buckets import BUCKETS, Bound, by_bound
from tracekit.findings.tried import with_results
from tracekit.profile import LEAST_SHARE, Profile
from tracekit.profile.compare import Comparison
from tracekit.profile.graph_cost import changed_sizes
from tracekit.profile.run_facts import break_even_doubt, break_even_steps, contrast_of
from tracekit.report.blocks import Sentences
from tracekit.report.comparability import work_by_kind
from tracekit.report.model import Report
from tracekit.report.section import Contents, of_comparison
from tracekit.report.sections.headline import given_up, pays_off
from tracekit.run import Ledger, Variant
from tracekit.run.contrast import Contrast, compiling_cost
from tracekit.run.settings import BACKENDS, DEFAULT, Backend

_PRODUCTS = ("matmul", "convolution", "attention")
_WORK = {
    "matrix products and convolutions": _PRODUCTS,  # which compiling leaves to the libraries' kernels
    "gathering and scattering": ("scatter/gather", "embedding", "sparse"),  # message passing, above all
    # In eager code, each operator of these reads and writes memory once.
    "what can be fused": ("elementwise", "reduction", "normalisation", "random", "copy"),
}
# What Inductor generates from several operators: kernels, or loops on the CPU.
_GENERATED = re.compile(r"triton_[a-z]+_fused_|(?:graph_\d+_)?cpp_fused_")
_MAX_CONTRADICTION = 0.05  # of a step: closer than this, two traces do not contradict two passes
# What can hold a step back, besides computing; gaps, code loading and the profiler say nothing about compiling.
_BOUNDS: tuple[Bound, ...] = ("host", "syncs", "data", "communication", "copies", "compiling")
LEFT_AS_IT_IS = ("products", "syncs", "data", "communication", "copies")  # of these, what compiling does not change
_GAIN = 0.9  # of the eager step: a gain of less than a tenth needs a reason
_WARM_UP_SHARE = 0.05  # of the steps that compile: above this share, they are not just a warm-up
_UNTOUCHED_WORK = {
    "products": "matrix products and convolutions",
    "syncs": "sync stalls",
    "data": "waiting for data",
    "communication": "communication",
    "copies": "copies",
    "work": "other computing",
}
_WITH_GRAPHS = ("reduce-overhead", "max-autotune")  # modes in which Inductor records CUDA graphs


class Side(Struct, frozen=True, dict=True):
    """One variant, per counted step: ns, and calls."""

    profile: Profile

    @property
    def parts(self) -> dict[str, float]:
        """The wall time by bucket, waits in collectives as communication; nothing where that cannot be answered."""
        return self.profile.parts if self.profile.means["wall"] is not None else {}

    @property
    def step_ns(self) -> float:
        """The step that the parts add up to, ns."""
        return sum(self.parts.values())

    @property
    def has_gpu(self) -> bool:
        """Whether the work is a GPU's; else it is the CPU's."""
        return self.profile.trace.device == "gpu"

    @cached_property
    def work_ns(self) -> dict[str, float]:
        """Time by kind of work."""
        return work_by_kind(self.profile)

    def kinds_ns(self, kinds: tuple[str, ...]) -> float:
        """Time of the work of these kinds."""
        return sum(self.work_ns.get(kind, 0.0) for kind in kinds)

    @cached_property
    def launches(self) -> float | None:
        """Launch calls; None where none is known."""
        answer = summary(self.profile, "launches")
        return sum(answer.table["per_step"].to_pylist()) if answer.status == "answered" else None

    @cached_property
    def bounds(self) -> dict[str, float]:
        """What bounds the step, as shares of it; computing is divided by whether compiling can change it."""
        total, parts = self.step_ns, self.parts
        if not total:
            return {}
        times = by_bound(parts)
        shares: dict[str, float] = {name: times[name] / total for name in _BOUNDS}
        computing = parts.get("gpu_compute" if self.has_gpu else "cpu_compute", 0.0) / total
        work = sum(self.work_ns.values())
        of_products = self.kinds_ns(_PRODUCTS) / work if work else 0.0
        return {**shares, "products": computing * of_products, "work": computing * (1 - of_products)}


class Effects(Struct, frozen=True, dict=True):
    """A compiled variant against an eager one."""

    compiled: Side
    eager: Side

    @property
    def variant(self) -> Variant:
        """What the run says about the compiled variant."""
        assert self.compiled.profile.variant is not None
        return self.compiled.profile.variant

    @property
    def ledger(self) -> Ledger:
        """What the compiler did."""
        return self.variant.ledger

    @property
    def backend_name(self) -> str:
        """The backend that compiled."""
        return self.variant.requested.backend or DEFAULT

    @property
    def backend(self) -> Backend | None:
        """The facts known about that backend; None for one of which nothing is known."""
        return BACKENDS.get(self.backend_name)

    @property
    def unchanged(self) -> bool:
        """Whether a step takes as long as before."""
        step_ratio, noise = self.step_ratio
        return noise or 0.995 < step_ratio < 1.005

    @cached_property
    def step_ratio(self) -> tuple[float, bool]:
        """The step time divided by the eager one, and whether it is within noise: unprofiled, or else in the traces.

        With one pass each (`lone_passes`) it is about those passes, which says nothing about others.
        """
        if self._contrast is not None:
            return self._contrast.ratio, self._contrast.noise and not self.lone_passes
        return self.compiled.step_ns / self.eager.step_ns if self.eager.step_ns else 1.0, False

    @cached_property
    def _contrast(self) -> Contrast | None:
        return contrast_of(self.compiled.profile, self.eager.profile)

    @property
    def lone_passes(self) -> bool:
        """Whether either variant ran unprofiled only once, so that nothing is known about how much passes differ."""
        return self._contrast is not None and self._contrast.interval is None

    @property
    def gained(self) -> bool:
        """Whether a step became markedly shorter, beyond noise."""
        step_ratio, noise = self.step_ratio
        return step_ratio < _GAIN and not noise

    @property
    def traces_disagree(self) -> bool:
        """Whether the traced steps differ in the opposite direction from the unprofiled ones, beyond noise."""
        (step_ratio, noise), eager_ns = self.step_ratio, self.eager.step_ns
        traced = self.compiled.step_ns / eager_ns if eager_ns else 1.0
        return (
            not noise
            and (step_ratio - 1) * (traced - 1) < 0
            and min(abs(step_ratio - 1), abs(traced - 1)) > _MAX_CONTRADICTION
        )


@of_comparison("compiling", "What compiling changed", rank=5)
def compiling(report: Report, entry: Comparison) -> Contents | None:
    """Of a compiled variant beside an eager one: the reason first, and then what it rests on."""
    compiled, baseline = report.member(entry.variant), report.member(entry.baseline)
    if not isinstance(compiled, Profile) or not isinstance(baseline, Profile):
        return None
    if compiled.variant is None or baseline.variant is None:
        return None
    if not compiled.variant.requested.compile or baseline.variant.requested.compile:
        return None
    effects = Effects(Side(compiled), Side(baseline))
    tried = report.attempts[compiled.name]
    gain, reason = _gain(effects), _reason(effects)
    comma = "" if gain.endswith(",") or reason.startswith("because") else ","
    return Contents(
        (Sentences((f"{gain}{comma} {with_results(f'{reason}.', tried)} {' '.join(_facts(effects))}",)),),
        worth=1.0,
    )


def _gain(effects: Effects) -> str:
    step_ratio, noise = effects.step_ratio
    a_step = "In one pass each, a step" if effects.lone_passes else "A step"
    if effects.unchanged:
        return f"{a_step} takes as long as before,{' within noise,' if noise else ''}"
    if step_ratio >= 2:
        return f"{a_step} takes {ratio(step_ratio)} as long as before,"
    if step_ratio > 1:
        return f"{a_step} becomes {percent(step_ratio - 1)} longer"
    return f"{a_step} becomes {'' if effects.gained else 'only '}{percent(1 - step_ratio)} shorter"


def _reason(effects: Effects) -> str:
    """The first of the reasons that holds."""
    compiles = effects.compiled.profile.attribution.compiles  # of each recorded step, after the warm-up
    compiling, steps = int(compiles.sum()), len(compiles)
    limits = given_up(effects.ledger)
    if effects.variant.effective.ran_eagerly:
        return f"because nothing was compiled: {sanitize(effects.variant.effective.ran_eagerly)}"
    # Without a recompilation, they are first steps: those of a script so short that none are left out as a warm-up.
    if effects.ledger.recompiles and compiling > _WARM_UP_SHARE * steps:
        compiling_clause = "each step compiles" if compiling == steps else f"{compiling} of {steps} steps compile"
        return f"because {compiling_clause} again{_guard(effects)}"
    if limits and not effects.gained:
        return (
            f"because {', '.join(limits[:3])} reached the recompile limit and ran eagerly from then on{_guard(effects)}"
        )
    if effects.traces_disagree:
        change = effects.compiled.step_ns / effects.eager.step_ns - 1
        change_text = f"{percent(abs(change))} {'longer' if change > 0 else 'shorter'}"
        return f"but its traced steps, which became {change_text}, do not show why"
    if not effects.gained:
        return _bound(effects)
    # The buckets that became smaller, the largest first.
    compiled_parts, eager_parts = effects.compiled.parts, effects.eager.parts
    saved = {key: eager_parts.get(key, 0.0) - compiled_parts.get(key, 0.0) for key in eager_parts}
    total = sum(ns for ns in saved.values() if ns > 0)
    largest = sorted((key for key, ns in saved.items() if ns > 0.1 * total), key=lambda key: -saved[key])
    if not largest:
        return "and its traced steps do not show where"
    savings = [f"{BUCKETS[key].noun} ({duration(-saved[key], signed=True)})" for key in largest[:3]]
    return f"because it spends less on {_and(savings)}"


def _guard(effects: Effects) -> str:
    """The guard that failed most often, and which property of the graph it checks."""
    failed = Counter(
        compilation.guard or compilation.reason
        for compilation in effects.ledger.compiles
        if compilation.kind == "recompile" and (compilation.guard or compilation.reason)
    )
    if not failed:
        return ""
    guard = sanitize(failed.most_common(1)[0][0] or "", 120)
    sizes = [change.size for change in changed_sizes(effects.variant) if change.size]
    of_graph = f": the number of {sanitize(sizes[0])}" if sizes else ""
    return f" (guard {guard}{of_graph})"


def _bound(effects: Effects) -> str:
    """What takes most of the compiled step, and why compiling does not change that."""
    bounds = effects.compiled.bounds
    if not bounds:
        return "and its traced steps cannot say why: their wall time is unknown"
    name = max(bounds, key=lambda bound: bounds[bound])
    share = percent(bounds[name])
    if name == "host":
        waiting = (
            f"the GPU still spends {share} of a step waiting for the host"
            if effects.compiled.has_gpu
            else f"Python and what it calls still take {share} of a step"
        )
        return f"because {waiting}: {_host(effects)}"
    return (
        "because "
        + {
            "products": f"{share} of a step is matrix products and convolutions"
            f"{', which compiling leaves as they are' if effects.backend is not None else ''}",
            "work": f"{share} of a step is {_other_work(effects)}",
            "syncs": f"{share} of a step is lost to syncs, which compiling does not remove",
            "data": f"{share} of a step is waiting for data, which compiling does not change",
            "communication": f"{share} of a step is communication that nothing overlaps; compiling does not change it",
            "copies": f"{share} of a step is copies that nothing overlaps; compiling does not change them",
            "compiling": f"{share} of a step is compiling",
        }[name]
    )


def _host(effects: Effects) -> str:
    skips, launches = effects.ledger.skips, effects.compiled.launches
    if skips:
        why = sanitize(skips[0].reason or "", 120)
        return f"CUDA graphs were not recorded ({why})" if why else "CUDA graphs were not recorded"
    calls = f"{count(launches)} launch calls a step" if launches is not None else "its calls"
    if effects.ledger.breaks:
        leave = "leaves" if effects.ledger.break_places == 1 else "leave"
        return f"{many(effects.ledger.break_places, 'graph break')} {leave} {calls} and Python in between"
    if not effects.compiled.has_gpu:
        return "what surrounds the compiled code is not compiled"
    backend, mode = effects.backend, effects.variant.requested.mode
    if backend is not None and not backend.cuda_graphs:
        return f"{calls} are left, because {backend.name} neither fuses operators nor records CUDA graphs"
    if effects.backend_name != DEFAULT or mode in _WITH_GRAPHS:
        return f"{calls} are left"
    return f"{calls} are left, which CUDA graphs (mode='reduce-overhead') would replay as one"


def _other_work(effects: Effects) -> str:
    """Computing other than matrix products: what fusing can shorten, and what came of it.

    Only a backend that fuses, and whose generated kernels are in the trace, is said to have saved it by fusing.
    """
    sides = (effects.eager, effects.compiled)
    key = "gpu_compute" if effects.compiled.has_gpu else "cpu_compute"
    before, after = (side.parts.get(key, 0.0) - side.bounds.get("products", 0.0) * side.step_ns for side in sides)
    kind = "other GPU work" if effects.compiled.has_gpu else "other CPU work"
    if effects.backend is not None and not effects.backend.fuses:
        return f"{kind}, which {effects.backend.name} does not fuse"
    fused = effects.backend is not None and any(map(_GENERATED.match, effects.compiled.profile.trace.names))
    if after > 1.05 * before:
        return f"{kind}, which takes {duration(after - before)} more than in eager{_made_up(effects, after - before)}"
    if after >= 0.95 * before:
        return f"{kind}, of which fusing saved nothing" if fused else f"{kind}, which takes as long as in eager"
    saved = duration(before - after)
    saving_clause = f"of which fusing saved {saved}" if fused else f"which takes {saved} less than in eager"
    return f"{kind}, {saving_clause}{_made_up(effects, after - before)}"


def _made_up(effects: Effects, change: float) -> str:
    """Why a step takes as long as before although its work changed by that much, ns; empty if it does not."""
    if not effects.unchanged:
        return ""
    traced = effects.compiled.step_ns - effects.eager.step_ns
    if traced * change > 0 and abs(traced) > abs(change) / 2:
        return " in these traces, which the passes without the profiler do not confirm"
    compiled_parts, eager_parts = effects.compiled.parts, effects.eager.parts
    opposite = {key: compiled_parts.get(key, 0.0) - eager_parts.get(key, 0.0) for key in eager_parts}
    key = max(opposite, key=lambda bucket: -opposite[bucket] if change > 0 else opposite[bucket])
    verb = "saves" if change > 0 else "costs"
    return f", while {BUCKETS[key].noun} {verb} {duration(abs(opposite[key]))}" if opposite[key] * change < 0 else ""


def _facts(effects: Effects) -> Iterator[str]:
    """What the reason rests on."""
    ledger, eager, compiled = effects.ledger, effects.eager, effects.compiled
    clauses = [
        many(ledger.graphs, "graph"),
        many(ledger.recompiles, "recompilation"),
        many(ledger.break_places, "graph break"),
    ]
    if ledger.limits:
        clauses.append(f"{many(len(ledger.limits), 'function')} given up at the recompile limit")
    if ledger.skips:
        clauses.append(f"{many(len(ledger.skips), 'CUDA graph')} not recorded")
    yield f"Compiling resulted in {_and(clauses)}."

    yield from _most_to_gain(effects)

    before, after, waits = eager.launches, compiled.launches, compiled.bounds.get("host", 0.0)
    if before is not None and after is not None:
        idle = f"; the GPU still spends {percent(waits)} of a step waiting for the host"
        still = idle if waits >= LEAST_SHARE else ""
        yield f"Launch calls a step: {count(before)} eager, {count(after)} compiled{still}."

    # How the time of each kind of work changed; on a CPU, compiled code counts as one kind, whatever it contains.
    if eager.has_gpu and eager.work_ns:
        changes = ((name, eager.kinds_ns(kinds), compiled.kinds_ns(kinds)) for name, kinds in _WORK.items())
        texts = [f"{name} {duration(before)} → {duration(after)}" for name, before, after in changes if before or after]
        if texts:
            yield f"GPU time a step: {', '.join(texts)}."

    host = compiled.profile.means["host"]
    if guards_ns := host.parts.get("guards", 0.0) if host is not None else 0.0:
        share = guards_ns / compiled.step_ns if compiled.step_ns else None
        yield f"Checking guards takes {duration(guards_ns)} a step{f' ({percent(share)})' if share else ''}."

    cost, steps = compiling_cost(effects.variant), break_even_steps(compiled.profile, eager.profile)
    if cost and steps is not None:
        yield pays_off(cost, steps)
    elif cost:
        doubt = break_even_doubt(compiled.profile, eager.profile)
        yield f"Compiling cost {cost}; whether it pays off is unknown: {doubt}."


def _most_to_gain(effects: Effects) -> Iterator[str]:
    """How much of the eager step compiling cannot speed up, and how many times faster that leaves the step at most;
    nothing where nobody knows what the backend changes."""
    if effects.backend is None:
        return
    kinds = LEFT_AS_IT_IS if effects.backend.fuses else (*LEFT_AS_IT_IS, "work")
    shares = {name: effects.eager.bounds.get(name, 0.0) for name in kinds}
    untouched_share = sum(shares.values())
    if untouched_share < LEAST_SHARE:
        return
    share_by_kind = {_UNTOUCHED_WORK[name]: share for name, share in shares.items() if share >= LEAST_SHARE}
    clauses = (
        [f"{percent(share)} {name}" for name, share in share_by_kind.items()]
        if len(share_by_kind) > 1
        else [*share_by_kind]
    )
    untouched = f" ({_and(clauses)})" if share_by_kind else ""
    subject = "Compiling" if effects.backend_name == DEFAULT else f"Compiling with {effects.backend_name}"
    yield (
        f"{subject} can do nothing about {percent(untouched_share)} of the eager "
        f"step{untouched}, so it could make the step at most {ratio(1 / untouched_share)} faster."
    )


def _and(items: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(items[:-1]), items[-1])))
