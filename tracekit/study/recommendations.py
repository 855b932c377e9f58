"""Which variant is best at each setting, and on what evidence?

A variant is recommended if it is faster than the baseline beyond noise, computes the same losses, trains no worse (if
that was tried), and no cheaper one is as fast: among variants that are within noise of the fastest, the one with the
shortest compile time wins.
"""

from msgspec import Struct

from tracekit.base.units import count, duration, ratio
from tracekit.run.contrast import cold_cost_ns
from tracekit.study.failures import ENDINGS
from tracekit.study.settings import ONE_PASS, Group, Setting, SpeedUp, speed_up

_NOTED = 3  # rejected variants that a sentence names
_COSTLY_NS = 60_000_000_000  # compiling for longer is worth a remark


class Recommendation(Struct, frozen=True):
    """What to use at a setting; `best` is None if the baseline should be used or nothing can be recommended."""

    setting: Setting
    best: SpeedUp | None
    sentence: str

    @property
    def variant(self) -> str | None:
        """The variant to use; None where nothing could be compared."""
        if self.best is not None:
            return self.best.group.variant
        return self.setting.baseline.variant if self.setting.baseline is not None else None

    @property
    def basis(self) -> str | None:
        """What it rests on: passes or seeds, or that no variant differs beyond noise; None where nothing could be
        compared."""
        if self.best is not None:
            return self.best.basis
        compared = self.setting.speed_ups
        if any(comparison.basis == ONE_PASS for comparison in compared):
            return ONE_PASS
        if compared and all(comparison.noise for comparison in compared):
            return "within noise"
        return compared[0].basis if compared else None


def recommend(setting: Setting) -> Recommendation:
    """The variant to use at this setting, with the evidence in words."""
    base = setting.baseline
    if base is None:
        failed = setting.groups[0]
        outcome = failed.results[0].outcome
        why = ENDINGS.get(outcome, "was not measured" if outcome == "ok" else "has not run yet")
        return Recommendation(setting, None, f"{setting.name}: no recommendation, because {failed.variant} {why}.")
    best = _best(setting)
    clauses = [f"stay with {base.variant}"]
    if best is not None:
        steps, trained = best.break_even_steps, best.accuracy
        pays = f", breaks even after {count(round(steps))} steps" if steps is not None else ""
        loses = ""
        if trained is not None and trained.verdict in ("no loss", "better"):
            loses = f", no loss of {trained.metric}"
        clauses = [f"use {best.group.variant}, {_in_words(best)}{pays}{loses}"]
    # Why each of the other variants is not recommended.
    rejected = [comparison for comparison in setting.speed_ups if comparison is not best]
    clauses += [_why_not(comparison, best) for comparison in rejected[:_NOTED]]
    if len(rejected) > _NOTED:
        clauses.append(f"{len(rejected) - _NOTED} more are not better either")
    for group in setting.groups[1:]:
        if group.failures and not group.measured:
            clauses.append(f"{group.variant} failed ({group.failures[0].outcome})")
        elif group.measured and base.measured.keys().isdisjoint(group.measured):
            clauses.append(f"{group.variant} has no seed in common with {base.variant}, so they cannot be compared")
    return Recommendation(setting, best, f"{setting.name}: {'; '.join(clauses)}.")


def _best(setting: Setting) -> SpeedUp | None:
    faster = [
        comparison
        for comparison in setting.speed_ups
        if comparison.time_ratio < 1
        and not comparison.noise
        and not comparison.losses_differ
        and not _trains_worse(comparison)
    ]
    if not faster:
        return None
    fastest = min(faster, key=lambda comparison: comparison.time_ratio)
    alike = [
        comparison for comparison in faster if comparison is fastest or _within_noise(comparison.group, fastest.group)
    ]
    return min(alike, key=lambda comparison: (comparison.group.compile_ns or 0.0, comparison.time_ratio))


def _trains_worse(comparison: SpeedUp) -> bool:
    return comparison.accuracy is not None and comparison.accuracy.verdict == "worse"


def _within_noise(group: Group, rival: Group) -> bool:
    compared = speed_up(group, rival)
    return compared is None or compared.noise


def _in_words(comparison: SpeedUp) -> str:
    """`1.31 × faster than eager (1.25–1.40)`."""
    slower = comparison.time_ratio > 1
    low, high = comparison.interval or (comparison.time_ratio, comparison.time_ratio)
    ends = (low, high) if slower else (1 / high, 1 / low if low else float("inf"))
    factor = comparison.time_ratio if slower else comparison.speed_up
    seeds = f" over {comparison.seeds} seeds" if comparison.seeds > 1 else ""
    interval = f" ({ends[0]:.2f}–{ends[1]:.2f}{seeds})" if comparison.interval else ""
    return f"{ratio(factor)} {'slower' if slower else 'faster'} than {comparison.baseline.variant}{interval}"


def _why_not(comparison: SpeedUp, best: SpeedUp | None) -> str:
    name, cost = comparison.group.variant, comparison.group.mean(cold_cost_ns) or 0.0
    compiling = f" and takes {duration(cost)} to compile" if cost > _COSTLY_NS else ""
    if comparison.losses_differ:
        return f"{name} computes different losses"
    if _trains_worse(comparison) and comparison.accuracy is not None:
        return f"{name} trains worse ({comparison.accuracy.metric})"
    if comparison.group.ran_eagerly:
        return f"{name} ran eagerly ({comparison.group.ran_eagerly})"
    limit = ", after the compiler gave up at the recompile limit" if comparison.group.gave_up else ""
    if comparison.interval is None:
        return (
            f"{name} cannot be told from {comparison.baseline.variant}: one pass each proves nothing{compiling}{limit}"
        )
    if comparison.noise:
        return f"{name} is within noise of {comparison.baseline.variant}{compiling}{limit}"
    if comparison.time_ratio > 1:
        return f"{name} is {_in_words(comparison)}{compiling}{limit}"
    if best is not None and _within_noise(comparison.group, best.group):
        return f"{name} is as fast within noise, but takes longer to compile ({duration(cost)})"
    return f"{name} is only {_in_words(comparison)}{compiling}{limit}"
