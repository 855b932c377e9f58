"""What did compiling change, and what holds the compiled step back? Numbers; `sections.compiling` says them."""

from collections import Counter
from dataclasses import dataclass
from functools import cached_property

from tracekit.analyses import summaries
from tracekit.analyses.kernel_time import kernel_times, summed
from tracekit.profile import Profile
from tracekit.run import Ledger, Variant
from tracekit.run_facts import contrast_of

_PRODUCTS = ("matmul", "convolution", "attention")
# What fusing merges: each of these reads and writes memory once for every operator of eager code.
_FUSED = ("elementwise", "reduction", "normalisation", "random", "copy")
# What bounds a step, by the buckets that tell of it.
_BOUNDS = {
    "host": ("kernel_launch", "dispatch", "python", "guards", "alloc"),
    "syncs": ("sync_stall", "sync"),
    "data": ("dataload",),
    "communication": ("gpu_comm",),
    "cpu": ("cpu_compute",),
    "compiling": ("compile",),
}


@dataclass(frozen=True)
class Side:
    """One variant, per counted step: ns, and calls."""

    profile: Profile

    @property
    def parts(self) -> dict[str, float]:
        """The wall time by bucket, or the host's where that is unknown."""
        mean = self.profile.means["wall"] or self.profile.means["host"]
        return mean.parts if mean is not None else {}

    @property
    def step_ns(self) -> float:
        """The step that the parts are of."""
        return sum(self.parts.values())

    @cached_property
    def gpu_ns(self) -> dict[str, float]:
        """GPU time by kind of work; empty without a GPU."""
        return summed(kernel_times(self.profile), "label") if self.profile.trace.device == "gpu" else {}

    @property
    def products_ns(self) -> float:
        """What compiling leaves to the libraries' kernels."""
        return sum(self.gpu_ns.get(kind, 0.0) for kind in _PRODUCTS)

    @property
    def fusible_ns(self) -> float:
        """What fusing makes less of."""
        return sum(self.gpu_ns.get(kind, 0.0) for kind in _FUSED)

    @cached_property
    def launches(self) -> float | None:
        """Launch calls; None where none is known."""
        answer = next(each for each in summaries(self.profile) if each.analysis == "launches")
        return sum(answer.table["per_step"].to_pylist()) if answer.status == "answered" else None

    def bounds(self) -> dict[str, float]:
        """What the step is bound by, as shares of it; the GPU's work apart by whether compiling can touch it."""
        total, parts = self.step_ns, self.parts
        if not total:
            return {}
        shares = {name: sum(parts.get(key, 0.0) for key in keys) / total for name, keys in _BOUNDS.items()}
        working = parts.get("gpu_compute", 0.0) / total
        busy = sum(self.gpu_ns.values())
        of_products = self.products_ns / busy if busy else 0.0
        return {**shares, "products": working * of_products, "gpu": working * (1 - of_products)}


@dataclass(frozen=True)
class Effects:
    """A compiled variant against an eager one."""

    compiled: Side
    eager: Side

    @property
    def variant(self) -> Variant:
        """What the run says of the compiled one."""
        assert self.compiled.profile.variant is not None
        return self.compiled.profile.variant

    @property
    def ledger(self) -> Ledger:
        """What the compiler did."""
        return self.variant.ledger

    @cached_property
    def pace(self) -> tuple[float, bool]:
        """The step in eager ones, and whether it could as well be one: unprofiled, or else of the traces."""
        contrast = contrast_of(self.compiled.profile, self.eager.profile)
        if contrast is not None:
            return contrast.ratio, contrast.noise
        return self.compiled.step_ns / self.eager.step_ns if self.eager.step_ns else 1.0, False

    @property
    def graphs(self) -> int:
        """How many first compilations: each is a graph."""
        return sum(each.kind == "first" for each in self.ledger.compiles)

    @property
    def recompiles(self) -> int:
        """How often a graph was compiled again."""
        return sum(each.kind == "recompile" for each in self.ledger.compiles)

    @property
    def guard(self) -> str | None:
        """The guard that failed most often."""
        failed = Counter(
            each.guard or each.reason
            for each in self.ledger.compiles
            if each.kind == "recompile" and (each.guard or each.reason)
        )
        return failed.most_common(1)[0][0] if failed else None

    @property
    def compiling_steps(self) -> tuple[int, int]:
        """How many of the recorded steps compile, after the warm-up, and of how many."""
        steady = self.compiled.profile.cost.steady
        return int((~steady).sum()), len(steady)

    @property
    def guards_ns(self) -> float:
        """What checking guards takes of the host's time, a step."""
        host = self.compiled.profile.means["host"]
        return host.parts.get("guards", 0.0) if host is not None else 0.0


def effects(compiled: Profile, baseline: Profile) -> Effects | None:
    """None where not a compiled variant stands against an eager one."""
    ours, theirs = compiled.variant, baseline.variant
    if ours is None or theirs is None or not ours.requested.compile or theirs.requested.compile:
        return None
    return Effects(Side(compiled), Side(baseline))
