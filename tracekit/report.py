"""Everything a face shows, worked out once: variants, differences, answers, and what must be said beside them."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tracekit.analyses import Answer, summaries
from tracekit.compare import COVERS, Comparison, Difference, compare
from tracekit.engine.buckets import HOST, WALL
from tracekit.errors import UnknownVariantError
from tracekit.intervals import Bools
from tracekit.profile import Profile, Subject
from tracekit.run_facts import (
    Fact,
    busy,
    cold_cost_ns,
    contrast_of,
    facts,
    loss_difference,
    pay_back_steps,
    pays_back_within_noise,
    tolerance_of,
    warnings,
)
from tracekit.unprofiled import Contrast, passes_document

SCHEMA = "tracekit.report/1"


@dataclass(frozen=True)
class Note:
    """Something a reader must know beside the figures."""

    kind: str  # health, cannot answer, inferred, mean, comparison, problem
    variant: str
    text: str


@dataclass(frozen=True)
class Report:
    """Variants against a baseline. All times are ns; means are over each variant's counted steps."""

    subject: Subject
    baseline: Profile
    comparisons: list[Comparison]  # of every variant but the baseline, in order

    @property
    def profiles(self) -> list[Profile]:
        """The variants, in the order given."""
        return self.subject.profiles

    @cached_property
    def answers(self) -> list[tuple[Profile, Answer]]:
        """Every analysis of every variant: analysis by analysis, so that variants stand side by side."""
        asked = [(profile, summaries(profile)) for profile in self.profiles]
        return [(profile, given[place]) for place in range(len(asked[0][1])) for profile, given in asked]

    @cached_property
    def notes(self) -> list[Note]:
        """What was inferred, what cannot be answered, what is wrong with the traces."""
        return list(self._notes())

    @cached_property
    def facts(self) -> list[Fact]:
        """What a run adds: the unprofiled pace, what compiling cost, memory, losses."""
        return facts(self.profiles, self.baseline)

    def comparison(self, name: str) -> Comparison | None:
        """The comparison of that variant; None for the baseline."""
        return next((entry for entry in self.comparisons if entry.variant == name), None)

    def _notes(self) -> Iterator[Note]:
        for problem in self.subject.problems:
            name, _, text = problem.partition(": ")
            yield Note("problem", name, text)
        was_busy = busy(self.subject.run) if self.subject.run is not None else None
        for profile in self.profiles:
            if was_busy:
                yield Note("warning", profile.name, was_busy)
            for warning in warnings(profile, self.baseline):
                yield Note("warning", profile.name, warning)
            for view, reason in profile.cost.cannot_answer.items():
                yield Note(
                    "cannot answer", profile.name, f"the {view} view: {reason}{'' if reason.endswith('?') else '.'}"
                )
            for view, known in (("wall", profile.cost.wall_known), ("host", profile.cost.host_known)):
                unknown = int((~known).sum())
                if not unknown or view in profile.cost.cannot_answer:
                    continue
                why = (
                    "the file was cut, and some of their events may be missing."
                    if profile.trace.cut_short
                    else "they launched work, and none of it is in the trace."
                )
                yield Note("cannot answer", profile.name, f"the {view} view of {unknown} of {len(known)} steps: {why}")
            if profile.none_steady:
                yield Note(
                    "mean", profile.name, "no step is steady: the means are over all of them, compilation included."
                )
            if "host" not in profile.cost.cannot_answer and not profile.trace.has_stacks:
                yield Note(
                    "inferred",
                    profile.name,
                    "without Python stacks, Python is inferred: the time between operators on the driving thread.",
                )
            for limit in profile.trace.health:
                yield Note("health", profile.name, limit.message)
        for entry in self.comparisons:
            if entry.wall is None:
                yield Note("comparison", entry.variant, f"its wall time cannot be set against {entry.baseline}'s.")
            elif entry.wall.delta_interval is None:
                yield Note("comparison", entry.variant, "too few steps to tell a difference from noise.")
            else:
                yield Note("comparison", entry.variant, self._what_intervals_cover(entry))

    def _what_intervals_cover(self, entry: Comparison) -> str:
        found = self._contrast(entry)
        said = f"the intervals of its buckets cover {COVERS}."
        if found is None or entry.wall is None:
            return said
        if found.noise and not entry.wall.noise():
            return (
                f"{said} Its unprofiled step time is within noise of {entry.baseline}'s: these differences may be, too."
            )
        if (found.ratio > 1) != (entry.wall.delta_ns > 0):
            return f"{said} Its traced steps differ the other way round than its unprofiled ones: believe the latter."
        return said

    def _contrast(self, entry: Comparison) -> Contrast | None:
        by_name = {profile.name: profile for profile in self.profiles}
        return contrast_of(by_name[entry.variant], self.baseline)

    def document(self) -> dict[str, Any]:
        """The machine-readable report."""
        return {
            "schema": SCHEMA,
            "baseline": self.baseline.name,
            "run": self._run(),
            "variants": [self._variant(profile) for profile in self.profiles],
            "comparison": [_comparison(entry, self._contrast(entry)) for entry in self.comparisons],
            "answers": [_answer(profile, answer) for profile, answer in self.answers],
            "findings": [],
        }

    def _run(self) -> dict[str, Any] | None:
        run = self.subject.run
        if run is None:
            return None
        return {
            "recipe": run.recipe,
            "created": run.created,
            "device": run.device,
            "data": run.data,
            "params": run.params,
            "environment": run.environment,
            "seed": run.seed,
        }

    def _variant(self, profile: Profile) -> dict[str, Any]:
        return {
            "name": profile.name,
            "trace": str(profile.trace.path),
            **profile.cost.document(),
            "mean": profile.mean(),
            "mean_over": _numbers(profile, profile.counted),
            "host_mean_over": _numbers(profile, profile.answered["host"]),
            "notes": [{"kind": note.kind, "text": note.text} for note in self.notes if note.variant == profile.name],
            "measured": _measured(profile, self.baseline),
            "cold": _cold(profile),
            "ranks": [],
        }


def _numbers(profile: Profile, chosen: Bools) -> list[int]:
    return [number for number, taken in zip(profile.trace.steps.number, chosen.tolist(), strict=True) if taken]


def _cold(profile: Profile) -> dict[str, Any] | None:
    """The first steps of a run; they are its declared warm-up, so none of them is steady."""
    if profile.cold is None:
        return None
    steps = [{**step, "steady": False} for step in profile.cold.document()["steps"]]
    return {"trace": str(profile.cold.trace.path), "steps": steps}


def _measured(profile: Profile, baseline: Profile) -> dict[str, Any] | None:
    """The unprofiled pass, and what goes with it; None for a bare trace."""
    variant = profile.variant
    if variant is None or variant.measured is None:
        return None
    measured, pay_back, off = variant.measured, pay_back_steps(profile, baseline), loss_difference(profile, baseline)
    return {
        "step_ns": float(measured.step_ns),
        "note": "unprofiled: the median of the timed steps; of several passes, the geometric mean of their medians",
        **passes_document(measured),
        "spread_ns": float(measured.spread_ns),
        "steps": measured.steps,
        "clock": measured.clock,
        "first_steps_ns": list(measured.first_steps_ns),
        "profiled_step_ns": float(variant.profiled.step_ns) if variant.profiled is not None else None,
        "cold_cost_ns": cold_cost_ns(variant),
        "pay_back_steps": pay_back if pay_back != float("inf") else None,
        "never_pays_back": pay_back == float("inf"),
        "pay_back_within_noise": pays_back_within_noise(profile, baseline),
        "peak_allocated_bytes": variant.memory.peak_allocated_bytes,
        "peak_reserved_bytes": variant.memory.peak_reserved_bytes,
        "host_peak_rss_bytes": variant.memory.host_peak_rss_bytes,
        "loss_difference": off if off != float("inf") else None,
        "loss_tolerance": tolerance_of(profile, baseline),
        "loss_drift": variant.loss_drift,
        "losses": list(variant.losses),
        "metrics": dict(variant.metrics),
    }


def report(subject: Subject, baseline: str | None = None) -> Report:
    """Set every variant against the baseline, the first one unless named. Raises UnknownVariantError."""
    by_name = {profile.name: profile for profile in subject.profiles}
    if baseline is not None and baseline not in by_name:
        raise UnknownVariantError(baseline, list(by_name))
    base = by_name[baseline] if baseline is not None else subject.profiles[0]
    return Report(subject, base, [compare(profile, base) for profile in subject.profiles if profile is not base])


def _comparison(entry: Comparison, found: Contrast | None) -> dict[str, Any]:
    wall, host = entry.wall, entry.host
    return {
        "variant": entry.variant,
        "baseline": entry.baseline,
        "delta_ns": wall.delta_ns if wall is not None else None,
        "delta_interval": wall.delta_interval if wall is not None else None,
        "wall": wall.parts if wall is not None else None,
        "interval": wall.intervals if wall is not None else None,
        "noise": [key for key in WALL if wall.parts[key] and wall.noise(key)] if wall is not None else None,
        "host_delta_ns": host.delta_ns if host is not None else None,
        "host": host.parts if host is not None else None,
        "host_interval": host.intervals if host is not None else None,
        "interval_covers": COVERS,
        "unprofiled": found.document() if found is not None else None,
    }


def _answer(profile: Profile, answer: Answer) -> dict[str, Any]:
    return {
        "analysis": answer.analysis,
        "variant": profile.name,
        "title": answer.title,
        "sentence": answer.sentence,
        "columns": [
            {
                "name": field.name,
                "unit": (field.metadata or {}).get(b"unit", b"").decode(),
                "meaning": (field.metadata or {}).get(b"comment", b"").decode(),
            }
            for field in answer.table.schema
        ],
        "rows": [list(row.values()) for row in answer.table.to_pylist()],
    }


@dataclass(frozen=True)
class Grid:
    """Buckets by variant as people read them: whole thousandths of one unit, which add up down and across.

    `scale_ns` ns are one unit; `cells[key][variant]` and the deltas count thousandths of it.
    """

    view: str
    unit: str
    scale_ns: int
    keys: list[str]  # buckets that hold anything, and "" for the total
    cells: dict[str, dict[str, int]]
    deltas: dict[str, dict[str, int]]  # against the baseline, for the other variants
    differences: dict[str, Difference | None]


_UNITS = (("s", 1_000_000_000, 10), ("ms", 1_000_000, 1), ("µs", 1_000, 0))


def grid(found: Report, view: str) -> Grid | None:
    """One view of every variant that can answer it; None where none can."""
    keys = WALL if view == "wall" else HOST
    means: dict[str, dict[str, float]] = {}
    for profile in found.profiles:
        parts = profile.mean()[view]
        if isinstance(parts, dict):
            means[profile.name] = parts
    if not means:
        return None
    longest = max(sum(parts.values()) for parts in means.values())
    unit, scale = next((unit, scale) for unit, scale, least in _UNITS if longest >= scale * least)
    cells: dict[str, dict[str, int]] = {key: {} for key in (*keys, "")}
    for name, parts in means.items():
        whole = _apportioned([parts[key] * 1000 / scale for key in keys])
        for key, value in zip(keys, whole, strict=True):
            cells[key][name] = value
        cells[""][name] = sum(whole)
    shown = [key for key in keys if any(cells[key].values())]
    base = found.baseline.name
    deltas = {
        key: {name: row[name] - row[base] for name in row if name != base and base in row} for key, row in cells.items()
    }
    differences = {entry.variant: getattr(entry, view) for entry in found.comparisons}
    return Grid(view, unit, scale, [*shown, ""], cells, deltas, differences)


def _apportioned(parts: list[float]) -> list[int]:
    """Whole numbers next to the parts whose sum is the rounded sum of the parts (largest remainders first)."""
    floors = [int(part // 1) for part in parts]
    missing = round(sum(parts)) - sum(floors)
    by_remainder = sorted(range(len(parts)), key=lambda place: (floors[place] - parts[place], place))
    for place in by_remainder[:missing]:
        floors[place] += 1
    return floors
