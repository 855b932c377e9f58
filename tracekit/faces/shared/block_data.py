"""Sections and their blocks as plain data, for the machine-readable report."""

from functools import singledispatch
from typing import Any

import pyarrow as pa

from tracekit.compare import Difference
from tracekit.report.blocks import Block, Cards, Excerpt, Notes, Sentences, Series, Table
from tracekit.report.breakdown import Breakdown
from tracekit.report.section import Section
from tracekit.trace.schema import metadata


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


@as_data.register
def _(block: Sentences) -> dict[str, Any]:
    return {"tone": block.tone, "lines": list(block.lines)}


@as_data.register
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


@as_data.register
def _(block: Table) -> dict[str, Any]:
    return {"name": block.name, "layout": block.layout, **table_as_data(block.rows)}


@as_data.register
def _(block: Breakdown) -> dict[str, Any]:
    return {
        "name": block.name,
        "title": block.title,
        "parts": [{"key": part.key, "label": part.label, "meaning": part.meaning} for part in block.parts],
        "variants": [
            {"name": name, "total_ns": sum(row.values()), "parts": dict(row)} for name, row in block.means.items()
        ],
        "differences": [
            {"variant": name, "baseline": block.baselines.get(name), **_difference(difference)}
            for name, difference in block.differences.items()
        ],
        "unanswered": dict(block.unanswered),
    }


def _difference(difference: Difference | None) -> dict[str, Any]:
    if difference is None:
        return {"delta_ns": None, "delta_interval": None, "parts": None, "intervals": None}
    return {
        "delta_ns": difference.delta_ns,
        "delta_interval": difference.delta_interval,
        "parts": difference.parts,
        "intervals": difference.intervals,
    }


@as_data.register
def _(block: Series) -> dict[str, Any]:
    return {
        "name": block.name,
        "unit": next((line.unit for line in block.lines), "ns"),
        "lines": [
            {"name": line.name, "steps": list(line.steps), "values": list(line.values), "marks": list(line.marks)}
            for line in block.lines
        ],
    }


@as_data.register
def _(block: Notes) -> dict[str, Any]:
    return {"notes": [{"kind": note.kind, "variants": list(note.variants), "text": note.text} for note in block.notes]}


@as_data.register
def _(block: Excerpt) -> dict[str, Any]:
    costs, fused = (
        {name: {str(line): ns for line, ns in rows.items()} for name, rows in costs_by_variant.items()}
        for costs_by_variant in (block.costs, block.fused)
    )
    return {"file": block.file, "first": block.first, "lines": list(block.lines), "costs": costs, "fused": fused}
