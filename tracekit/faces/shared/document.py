"""The machine-readable report, `tracekit.report/1`: its figures, and its sections and blocks as plain data. Keys may be
added, and are never renamed.
"""

import json
from collections.abc import Callable
from functools import singledispatch
from typing import Any

import msgspec
import pyarrow as pa
from msgspec.structs import asdict

from tracekit.base.intervals import Bools
from tracekit.engine import Attribution
from tracekit.engine.attribution import StepView
from tracekit.engine.buckets import WALL
from tracekit.profile import Mean, Member, Profile, Untraced
from tracekit.profile.calibration import Calibration
from tracekit.profile.compare import Comparison
from tracekit.profile.names import path_as_text
from tracekit.profile.profile import as_contracted
from tracekit.profile.run_facts import (
    break_even_doubt,
    break_even_steps,
    contrast_of,
    loss_difference,
    tolerance_of,
)
from tracekit.profile.subject import device_name
from tracekit.ranks.matching import missing, shortcomings
from tracekit.report import Report
from tracekit.report.blocks import Block, Cards, Excerpt, Notes, Sentences, Series, Table
from tracekit.report.breakdown import Breakdown
from tracekit.report.section import Section
from tracekit.run import Run
from tracekit.run.contrast import Contrast, cold_cost_ns, passes_document
from tracekit.trace.schema import metadata

SCHEMA = "tracekit.report/1"
_UNPROFILED = {  # what a step time is, by whether steps are alike in every pass
    True: "unprofiled: the median of the timed steps; with several passes, the geometric mean of their medians",
    False: "unprofiled: steps are not alike, so it is a mean: over whole periods of steps that repeat, else over all "
    "timed steps; with several passes, the geometric mean of theirs",
}


def as_json(document: dict[str, Any], default: Callable[[Any], Any] | None = None) -> str:
    """A document as JSON text in ASCII, whatever names contain; `default` makes plain data of what is none."""
    return json.dumps(document, indent=1, allow_nan=False, default=default).replace("\x7f", "\\u007f") + "\n"


def as_document(report: Report) -> dict[str, Any]:
    """Everything in the report, as plain data."""
    answers = [
        {"analysis": answer.analysis, "variant": profile.name, "title": answer.title, "sentence": answer.sentence}
        | table_as_data(answer.table)
        for profile, answer in report.answers
    ]
    for section in report.sections:
        if section.scope == "run":  # its tables are about all variants, and name the variant in each row
            text = " ".join(line for block in section.blocks if isinstance(block, Sentences) for line in block.lines)
            answers += (
                {"analysis": name, "variant": None, "title": section.title, "sentence": text} | table_as_data(rows())
                for name, rows in section.contents.tables.items()
            )
    return {
        "schema": SCHEMA,
        "baseline": report.baseline.name,
        "run": _run(report.subject.run),
        "runs": [{"name": name, **(_run(run) or {})} for name, run in report.subject.runs.items()],
        "variants": [
            _untraced(report, member) if isinstance(member, Untraced) else _variant(report, member)
            for member in report.subject.members
        ],
        "comparison": [
            _comparison(report, entry, contrast_of(report.member(entry.variant), report.member(entry.baseline)))
            for entry in report.comparisons
        ],
        "answers": answers,
        "findings": [
            {"variant": name, **finding.document()}
            for name, diagnosis in report.diagnoses.items()
            for finding in diagnosis.told
        ],
        "sections": [section_as_data(section) for section in report.sections],
        **(_choice(report) if report.choice.words else {}),
    }


def _choice(report: Report) -> dict[str, Any]:
    """Which findings were chosen, and how many of each variant are not listed because of that."""
    unlisted = {name: diagnosis.unlisted for name, diagnosis in report.diagnoses.items()}
    return {
        "choice": {"select": list(report.choice.select), "ignore": list(report.choice.ignore), "unlisted": unlisted}
    }


def _run(run: Run | None) -> dict[str, Any] | None:
    if run is None:
        return None
    names = ("recipe", "created", "device", "data", "params", "environment", "seed")
    return {name: getattr(run, name) for name in names}


def _variant(report: Report, profile: Profile) -> dict[str, Any]:
    variant, diagnosis = profile.variant, report.diagnoses[profile.name]
    inferred_from = profile.attribution.trace.steps.inferred
    iterations = cold = None
    if inferred_from is not None:  # what means, findings and sentences rest on
        iterations = {"inferred_from": inferred_from, "steps": _steps(profile.attribution)}
    if profile.cold is not None:  # none is called steady, even if it compiles nothing: they are the declared warm-up
        steps = [{**step, "steady": False} for step in attribution(as_contracted(profile.cold))["steps"]]
        cold = {"trace": path_as_text(profile.cold.trace.path), "steps": steps}
    columns = report.ranks.get(profile.name, [])
    notes = shortcomings(columns)
    ranks = [
        {
            "rank": rank_columns.rank,
            "trace": path_as_text(rank_columns.trace),
            "mean": _means(rank_columns.means),
            "clock_error_ns": report.collectives[profile.name].clocks[rank_columns.rank].error_ns,
            "note": notes.get(rank_columns.rank),
        }
        for rank_columns in columns
    ]
    absent: dict[str, Any] = {"trace": None, "mean": None, "clock_error_ns": None, "note": "there is no trace of it"}
    ranks += ({"rank": rank} | absent for rank in missing(columns))
    return {
        "name": profile.name,
        "run": profile.run_name or None,
        "outcome": variant.outcome if variant is not None else "ok",
        "reason": variant.error if variant is not None else None,
        "trace": path_as_text(profile.trace.path),
        **attribution(profile.contract),
        "health": [breach.document() for breach in profile.health],
        "iterations": iterations,
        "device_name": device_name(profile),
        "mean": _means(profile.contract_means),
        "mean_over": _numbers(profile, profile.counted),
        "host_mean_over": _numbers(profile, profile.answered["host"]),
        "notes": _notes(report, profile),
        "verdict": diagnosis.verdict.document(),
        "withheld": [asdict(withheld) for withheld in diagnosis.withheld],
        "measured": _measured(profile, report.base_of(profile)),
        "calibrated": _calibrated(report, profile),
        "cold": cold,
        "ranks": ranks,
    }


def _untraced(report: Report, member: Untraced) -> dict[str, Any]:
    return {
        "name": member.name,
        "run": member.run_name or None,
        "outcome": member.outcome,
        "reason": member.reason,
        "trace": None,
        "device": None,
        "device_name": None,
        "health": [],
        "cannot_answer": {},
        "steps_from": None,
        "steps": [],
        "iterations": None,
        "mean": None,
        "mean_over": [],
        "host_mean_over": [],
        "notes": _notes(report, member),
        "verdict": None,
        "withheld": [],
        "measured": _measured(member, report.base_of(member)) if member.is_measured else None,
        "calibrated": None,
        "cold": None,
        "ranks": [],
    }


def _notes(report: Report, member: Member) -> list[dict[str, str]]:
    return [{"kind": note.kind, "text": note.text} for note in report.notes if note.variants == (member.name,)]


def attribution(attributed: Attribution) -> dict[str, Any]:
    """The attribution of one trace: its steps, views and limits."""
    return {
        "device": attributed.trace.device,
        "health": [breach.document() for breach in attributed.trace.health],
        "cannot_answer": dict(attributed.cannot_answer),
        "steps_from": "annotations" if attributed.trace.steps.annotated else attributed.trace.steps.inferred,
        "steps": _steps(attributed),
    }


def _steps(attributed: Attribution) -> list[dict[str, Any]]:
    steps, wall, host = attributed.trace.steps, attributed.views["wall"], attributed.views["host"]
    return [
        {
            "step": steps.number[k],
            "start_ns": int(wall.starts_ns[k]),
            "wall_ns": int(wall.step_ns[k]),
            "host_start_ns": int(host.starts_ns[k]),
            "host_ns": int(host.step_ns[k]),
            "steady": not attributed.compiles[k],
            "wall": _step_parts(wall, k),
            "host": _step_parts(host, k),
        }
        for k in range(len(steps))
    ]


def _step_parts(view: StepView, k: int) -> dict[str, int] | None:
    return dict(zip(view.keys, view.totals[k].tolist(), strict=True)) if view.known[k] else None


def _means(means: dict[str, Mean | None]) -> dict[str, Any]:
    times = {f"{name}_ns": mean.step_ns if mean is not None else None for name, mean in means.items()}
    return times | {name: mean.parts if mean is not None else None for name, mean in means.items()}


def _numbers(profile: Profile, selected: Bools) -> list[int]:
    return [
        number for number, is_selected in zip(profile.trace.steps.number, selected.tolist(), strict=True) if is_selected
    ]


def _measured(member: Member, baseline: Member) -> dict[str, Any] | None:
    """The unprofiled pass and related measurements; None for a bare trace."""
    variant = member.variant
    if variant is None or variant.measured is None:
        return None
    measured, pay_back = variant.measured, break_even_steps(member, baseline)
    loss_gap = loss_difference(member, baseline)
    return {
        "step_ns": float(measured.step_ns),
        "note": _UNPROFILED[all(timed_pass.alike for timed_pass in measured.counted_passes)],
        **passes_document(measured),
        "spread_ns": float(measured.spread_ns),
        "steps": measured.steps,
        "clock": measured.clock,
        "first_steps_ns": list(measured.first_steps_ns),
        "infer_ns": measured.infer_ns,
        "compile_ns": measured.compile_ns,
        "compile_before_ns": measured.compile_before_ns,
        "profiled_step_ns": float(variant.profiled.step_ns) if variant.profiled is not None else None,
        "cold_cost_ns": cold_cost_ns(variant),
        "pay_back_steps": pay_back if pay_back != float("inf") else None,
        "never_pays_back": pay_back == float("inf"),
        "pay_back_within_noise": bool(break_even_doubt(member, baseline)),
        "peak_allocated_bytes": variant.memory.peak_allocated_bytes,
        "peak_reserved_bytes": variant.memory.peak_reserved_bytes,
        "host_peak_rss_bytes": variant.memory.host_peak_rss_bytes,
        "above_start_bytes": variant.memory.above_start_bytes,
        "memory": msgspec.to_builtins(variant.memory),
        "loss_difference": loss_gap if loss_gap != float("inf") else None,
        "loss_tolerance": tolerance_of(member, baseline),
        "loss_drift": variant.loss_drift,
        "losses": list(variant.losses),
        "gradients": list(variant.gradients),
        "gradient_drift": variant.gradient_drift,
        "metrics": dict(variant.metrics),
    }


def _calibrated(report: Report, profile: Profile) -> dict[str, Any] | None:
    """A step without the time of recording, an estimate; None where recording stretches the steps of no variant."""
    calibration = report.calibrations.get(profile.name)
    if calibration is None:
        return None
    return _estimate(calibration) | {"other": _estimate(calibration.other) if calibration.other is not None else None}


def _estimate(calibration: Calibration) -> dict[str, Any]:
    return {
        "wall_ns": sum(calibration.wall.values()) if calibration.wall else None,
        "host_ns": sum(calibration.host.values()) if calibration.host else None,
        "wall": calibration.wall or None,
        "host": calibration.host or None,
        "event_ns": calibration.overhead,
        "stretch": calibration.stretch,
        "error": calibration.error if calibration.variants else None,
        "why_not": calibration.why_not or None,
    }


def _comparison(report: Report, entry: Comparison, contrast: Contrast | None) -> dict[str, Any]:
    wall, host, estimate = entry.wall, entry.host, report.calibrated_difference(entry)
    return {
        "variant": entry.variant,
        "baseline": entry.baseline,
        "delta_ns": wall.delta_ns if wall is not None else None,
        "delta_interval": wall.delta_interval if wall is not None else None,
        "wall": wall.parts if wall is not None else None,
        "interval": wall.intervals if wall is not None else None,
        "noise": [key for key in WALL if wall.parts[key] and wall.is_noise(key)] if wall is not None else None,
        "host_delta_ns": host.delta_ns if host is not None else None,
        "host": host.parts if host is not None else None,
        "host_interval": host.intervals if host is not None else None,
        "interval_covers": next((view.covers for view in (wall, host) if view is not None), None),
        "pairs": wall.pairs if wall is not None else 0,
        "unprofiled": contrast.document() if contrast is not None else None,
        "calibrated": {"delta_ns": estimate.delta_ns, "wall": estimate.parts} if estimate is not None else None,
    }


def table_as_data(rows: pa.Table) -> dict[str, Any]:
    """A table as plain data: what each column means, and the rows."""
    return {
        "columns": [
            {
                "name": field.name,
                "unit": metadata(field, "unit"),
                "meaning": metadata(field, "comment"),
                "role": metadata(field, "role"),
            }
            for field in rows.schema
        ],
        "rows": [list(row.values()) for row in rows.to_pylist()],
    }


def section_as_data(section: Section) -> dict[str, Any]:
    """A section with its blocks."""
    return {
        "id": section.id,
        "title": section.title,
        "scope": section.scope,
        "variant": section.variant,
        "trace": section.trace,
        "baseline": section.baseline,
        "status": section.contents.status,
        "worth": section.contents.worth,
        "blocks": [{"kind": block.kind, **as_data(block)} for block in section.blocks],
    }


@singledispatch
def as_data(block: Block) -> dict[str, Any]:
    """One block as plain data."""
    raise TypeError(f"{type(block).__name__}: is not a kind of block")


@as_data.register(Sentences)
def _(block: Sentences) -> dict[str, Any]:
    return {"tone": block.tone, "lines": list(block.lines)}


@as_data.register(Cards)
def _(block: Cards) -> dict[str, Any]:
    cards = [
        {
            "headline": card.headline,
            "costs": dict(card.costs),
            "place": card.place,
            "why": card.why,
            "do": card.do,
            "also": list(card.also),
        }
        for card in block.cards
    ]
    return {"tone": block.tone, "lines": list(block.lines), "cards": cards}


@as_data.register(Table)
def _(block: Table) -> dict[str, Any]:
    return {"name": block.name, "layout": block.layout, **table_as_data(block.rows)}


@as_data.register(Breakdown)
def _(block: Breakdown) -> dict[str, Any]:
    return {
        "name": block.name,
        "title": block.title,
        "parts": [{"key": part.key, "label": part.label, "meaning": part.meaning} for part in block.parts],
        "variants": [
            {"name": name, "total_ns": sum(row.values()), "parts": dict(row)} for name, row in block.means.items()
        ],
        "differences": [
            {"variant": name, "baseline": block.baselines.get(name)}
            | {key: getattr(difference, key, None) for key in ("delta_ns", "delta_interval", "parts", "intervals")}
            for name, difference in block.differences.items()
        ],
        "unanswered": dict(block.unanswered),
    }


@as_data.register(Series)
def _(block: Series) -> dict[str, Any]:
    return {
        "name": block.name,
        "unit": next((line.unit for line in block.lines), "ns"),
        "lines": [
            {"name": line.name, "steps": list(line.steps), "values": list(line.values), "marks": list(line.marks)}
            for line in block.lines
        ],
    }


@as_data.register(Notes)
def _(block: Notes) -> dict[str, Any]:
    return {"notes": [{"kind": note.kind, "variants": list(note.variants), "text": note.text} for note in block.notes]}


@as_data.register(Excerpt)
def _(block: Excerpt) -> dict[str, Any]:
    costs, fused = (
        {name: {str(line): ns for line, ns in rows.items()} for name, rows in costs_by_variant.items()}
        for costs_by_variant in (block.costs, block.fused)
    )
    return {"file": block.file, "first": block.first, "lines": list(block.lines), "costs": costs, "fused": fused}
