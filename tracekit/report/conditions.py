"""Were variants captured under the same conditions? Differences are notes, or warnings if they void a comparison."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tracekit.profile import Member
from tracekit.profile.device import device_name
from tracekit.report.blocks import Note
from tracekit.run import Run

if TYPE_CHECKING:
    from tracekit.report.model import Report

_ALWAYS_DIFFERENT = {"captured", "cpu load", "gather bytes per s"}  # these differ between any two runs


def condition_notes(report: "Report") -> Iterator[Note]:
    """Which conditions differ between runs, and which comparisons are of different recipes, data or devices."""
    for entry in report.comparisons:
        member, baseline = report.member(entry.variant), report.member(entry.baseline)
        for condition, our_value, their_value in different_things(member, baseline):
            values = f"({our_value}; {their_value})"
            text = (
                f"its {condition} differs from that of {entry.baseline} {values}: "
                "that alone may explain a difference in time."
            )
            yield Note("warning", (entry.variant,), text)
    if len(report.subject.runs) > 1:
        yield from _between_runs(report)


def described(run: Run) -> list[tuple[str, str]]:
    """The conditions of a run, label and value."""
    environment = run.environment
    lines = [("recipe", run.recipe), ("captured", run.created), ("device", run.device), ("data", run.data or "")]
    lines += [("taking turns", _turns(run))]
    lines += [("parameters", ", ".join(f"{key}={value}" for key, value in run.params.items()))]
    lines += [(key, str(value)) for key, value in environment.items() if isinstance(value, str | int | float)]
    return [(label, value) for label, value in lines if value]


def _turns(run: Run) -> str:
    """What took turns, and why no blocks of steps did; empty if nothing is known."""
    passes = [timed_pass for variant in run.variants if variant.measured for timed_pass in variant.measured.passes]
    if run.why_no_turns:
        return f"whole passes, because {run.why_no_turns}"
    return "blocks of steps" if any(timed_pass.turns for timed_pass in passes) else ""


def different_things(member: Member, baseline: Member) -> Iterator[tuple[str, str, str]]:
    """Recipe, data or device, where both are known and differ."""
    pairs = [("device", device_name(member), device_name(baseline))]
    if member.run is not None and baseline.run is not None and member.run is not baseline.run:
        pairs += [(name, getattr(member.run, name), getattr(baseline.run, name)) for name in ("recipe", "data")]
    for condition, our_value, their_value in pairs:
        if our_value and their_value and our_value != their_value:
            yield condition, our_value, their_value


def _between_runs(report: "Report") -> Iterator[Note]:
    """Conditions whose values differ between the runs."""
    of_runs = {name: dict(described(run)) for name, run in report.subject.runs.items()}
    labels = dict.fromkeys(label for conditions in of_runs.values() for label in conditions)
    for label in labels:
        values = {name: conditions.get(label, "–") for name, conditions in of_runs.items()}
        if label.replace("_", " ") not in _ALWAYS_DIFFERENT and len(set(values.values())) > 1:
            listed = ", ".join(f"{value} ({name})" for name, value in values.items())
            yield Note("conditions", (), f"{label}: {listed}.")
