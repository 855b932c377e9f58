"""Which variant is best at each setting, and on what evidence?

A variant is recommended if it is faster than the baseline beyond noise, computes the same losses, trains no worse (if
that was tried), and no cheaper one is as fast: among variants that are within noise of the fastest, the one with the
shortest compile time wins.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from tracekit.study.failures import ENDINGS
from tracekit.study.settings import ONE_PASS, Group, Setting, SpeedUp, speed_up
from tracekit.units import count, duration, ratio
from tracekit.unprofiled import cold_cost_ns

_NOTED = 3  # rejected variants that a sentence names
_COSTLY_NS = 60_000_000_000  # compiling for longer is worth a remark


@dataclass(frozen=True)
class Recommendation:
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
        if any(each.basis == ONE_PASS for each in compared):
            return ONE_PASS
        if compared and all(each.noise for each in compared):
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
    lead = _use(best) if best is not None else f"stay with {base.variant}"
    reasons = [reason for reason in _reasons(setting, best) if reason]
    return Recommendation(setting, best, f"{setting.name}: {'; '.join([lead, *reasons])}.")


def _best(setting: Setting) -> SpeedUp | None:
    faster = [each for each in setting.speed_ups if each.time_ratio < 1 and not each.noise and _computes_the_same(each)]
    if not faster:
        return None
    fastest = min(faster, key=lambda each: each.time_ratio)
    alike = [each for each in faster if each is fastest or _within_noise(each.group, fastest.group)]
    return min(alike, key=lambda each: (each.group.compile_ns or 0.0, each.time_ratio))


def _computes_the_same(each: SpeedUp) -> bool:
    return not each.losses_differ and not _trains_worse(each)


def _trains_worse(each: SpeedUp) -> bool:
    return each.accuracy is not None and each.accuracy.verdict == "worse"


def _within_noise(group: Group, other: Group) -> bool:
    compared = speed_up(group, other)
    return compared is None or compared.noise


def _use(best: SpeedUp) -> str:
    steps = best.break_even_steps
    pays = f", breaks even after {count(round(steps))} steps" if steps is not None else ""
    trained = best.accuracy
    loses = f", no loss of {trained.metric}" if trained is not None and trained.verdict in ("no loss", "better") else ""
    return f"use {best.group.variant}, {_said(best)}{pays}{loses}"


def _said(each: SpeedUp) -> str:
    """`1.31 × faster than eager (1.25–1.40)`."""
    slower = each.time_ratio > 1
    low, high = each.interval or (each.time_ratio, each.time_ratio)
    ends = (low, high) if slower else (1 / high, 1 / low if low else float("inf"))
    factor = each.time_ratio if slower else each.speed_up
    seeds = f" over {each.seeds} seeds" if each.seeds > 1 else ""
    interval = f" ({ends[0]:.2f}–{ends[1]:.2f}{seeds})" if each.interval else ""
    return f"{ratio(factor)} {'slower' if slower else 'faster'} than {each.baseline.variant}{interval}"


def _reasons(setting: Setting, best: SpeedUp | None) -> Iterator[str]:
    """Why each of the other variants is not recommended."""
    others = [each for each in setting.speed_ups if each is not best]
    for each in others[:_NOTED]:
        yield _why_not(each, best)
    if len(others) > _NOTED:
        yield f"{len(others) - _NOTED} more are not better either"
    for group in setting.groups[1:]:
        if group.failures and not group.measured:
            yield f"{group.variant} failed ({group.failures[0].outcome})"
        elif group.measured and setting.groups[0].measured.keys().isdisjoint(group.measured):
            yield f"{group.variant} has no seed in common with {setting.groups[0].variant}, so they cannot be compared"


def _why_not(each: SpeedUp, best: SpeedUp | None) -> str:
    name, cost = each.group.variant, each.group.mean(cold_cost_ns) or 0.0
    compiling = f" and takes {duration(cost)} to compile" if cost > _COSTLY_NS else ""
    if each.losses_differ:
        return f"{name} computes different losses"
    if _trains_worse(each) and each.accuracy is not None:
        return f"{name} trains worse ({each.accuracy.metric})"
    if each.group.ran_eagerly:
        return f"{name} ran eagerly ({each.group.ran_eagerly})"
    limit = ", after the compiler gave up at the recompile limit" if each.group.gave_up else ""
    if each.interval is None:
        return f"{name} cannot be told from {each.baseline.variant}: one pass each proves nothing{compiling}{limit}"
    if each.noise:
        return f"{name} is within noise of {each.baseline.variant}{compiling}{limit}"
    if each.time_ratio > 1:
        return f"{name} is {_said(each)}{compiling}{limit}"
    if best is not None and _within_noise(each.group, best.group):
        return f"{name} is as fast within noise, but takes longer to compile ({duration(cost)})"
    return f"{name} is only {_said(each)}{compiling}{limit}"
