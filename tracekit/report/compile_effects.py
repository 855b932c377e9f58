"""What did compiling change, and what holds the compiled step back? `sections.compiling` puts it in words."""

import re
from collections import Counter
from dataclasses import dataclass
from functools import cached_property

from tracekit.analyses import summary
from tracekit.engine.buckets import Bound, by_bound
from tracekit.profile import Profile
from tracekit.profile.kernel_time import kernel_times, summed
from tracekit.run import Ledger, Variant
from tracekit.run.backends import BACKENDS, DEFAULT, Backend
from tracekit.run_facts import contrast_of
from tracekit.unprofiled import Contrast

_PRODUCTS = ("matmul", "convolution", "attention")
_ROWS = ("scatter/gather", "embedding", "sparse")  # work that moves rows: message passing, above all
# The kinds of work that fusing merges: in eager code, each operator of these reads and writes memory once.
_FUSED = ("elementwise", "reduction", "normalisation", "random", "copy")
_GENERATED = re.compile(r"triton_[a-z]+_fused_|(?:graph_\d+_)?cpp_fused_")
_ALIKE = 0.05  # of a step: closer than this, two traces do not contradict two passes
# What can hold a step back, besides computing; gaps, code loading and the profiler say nothing about compiling.
_BOUNDS: tuple[Bound, ...] = ("host", "syncs", "data", "communication", "copies", "compiling")
LEFT_AS_IT_IS = ("products", "syncs", "data", "communication", "copies")  # of these, what compiling does not change


@dataclass(frozen=True)
class Side:
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
        """Time by kind of work: of the GPU's kernels, or of operators on the CPU."""
        if self.has_gpu:
            return summed(kernel_times(self.profile), "label")
        work: Counter[str] = Counter()
        for row in summary(self.profile, "operators").table.select(["class", "step_ns"]).to_pylist():
            work[row["class"]] += row["step_ns"]
        return dict(work)

    @property
    def products_ns(self) -> float:
        """Time of the work that compiling leaves to the libraries' kernels."""
        return self._kinds_ns(_PRODUCTS)

    @property
    def fusible_ns(self) -> float:
        """Time of the work that fusing can reduce."""
        return self._kinds_ns(_FUSED)

    @property
    def rows_ns(self) -> float:
        """Time of gathering and scattering."""
        return self._kinds_ns(_ROWS)

    def _kinds_ns(self, kinds: tuple[str, ...]) -> float:
        return sum(self.work_ns.get(kind, 0.0) for kind in kinds)

    @cached_property
    def has_fused(self) -> bool:
        """Whether the trace shows kernels, or loops on the CPU, that Inductor generated from several operators."""
        return any(map(_GENERATED.match, self.profile.trace.names))

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
        of_products = self.products_ns / work if work else 0.0
        return {**shares, "products": computing * of_products, "work": computing * (1 - of_products)}


@dataclass(frozen=True)
class Effects:
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
        """What is known of it; None for one that may change anything."""
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
    def guard(self) -> str | None:
        """The guard that failed most often."""
        failed = Counter(
            compilation.guard or compilation.reason
            for compilation in self.ledger.compiles
            if compilation.kind == "recompile" and (compilation.guard or compilation.reason)
        )
        return failed.most_common(1)[0][0] if failed else None

    @property
    def compiling_steps(self) -> tuple[int, int]:
        """How many of the recorded steps compile, after the warm-up, and of how many."""
        compiles = self.compiled.profile.attribution.compiles
        return int(compiles.sum()), len(compiles)

    @property
    def traces_disagree(self) -> bool:
        """Whether the traced steps differ in the opposite direction from the unprofiled ones, beyond noise."""
        (step_ratio, noise), eager_ns = self.step_ratio, self.eager.step_ns
        traced = self.compiled.step_ns / eager_ns if eager_ns else 1.0
        return not noise and (step_ratio - 1) * (traced - 1) < 0 and min(abs(step_ratio - 1), abs(traced - 1)) > _ALIKE

    @property
    def most_to_gain(self) -> float | None:
        """How many times faster the eager step would be without all that compiling can change; None if unlimited or
        unknown."""
        untouched_share = sum(self.left_as_it_is.values())
        return 1 / untouched_share if untouched_share > 0 else None

    @property
    def left_as_it_is(self) -> dict[str, float]:
        """The shares of the eager step that the backend does not change; none where nobody knows what it changes."""
        if self.backend is None:
            return {}
        names = LEFT_AS_IT_IS if self.backend.fuses else (*LEFT_AS_IT_IS, "work")
        return {name: self.eager.bounds.get(name, 0.0) for name in names}

    @property
    def guards_ns(self) -> float:
        """The host time per step that checking guards takes."""
        host = self.compiled.profile.means["host"]
        return host.parts.get("guards", 0.0) if host is not None else 0.0


def effects_of(compiled: Profile, baseline: Profile) -> Effects | None:
    """The effects of compiling; None unless a compiled variant is compared with an eager one."""
    compiled_variant, baseline_variant = compiled.variant, baseline.variant
    if (
        compiled_variant is None
        or baseline_variant is None
        or not compiled_variant.requested.compile
        or baseline_variant.requested.compile
    ):
        return None
    return Effects(Side(compiled), Side(baseline))
