"""A report as tables only: every block with figures or text; blocks of the same name share a table."""

from functools import singledispatch
from typing import Any

import pyarrow as pa
from msgspec import Struct

from tracekit.report import Report
from tracekit.report.blocks import Block, Excerpt, Notes, Sentences, Series, Table
from tracekit.report.breakdown import TOTAL, Breakdown
from tracekit.report.tables import VARIANT, with_variant
from tracekit.trace.schema import column

SENTENCES = pa.schema(
    [
        column("section", pa.string(), "section of the report"),
        column("of", pa.string(), "variant that the sentence is about; empty where it is about the run"),
        column("sentence", pa.string(), "sentence of the report"),
    ]
)
_BREAKDOWN = pa.schema(
    [
        column("variant", pa.string(), "name of the variant", role="name"),
        column("bucket", pa.string(), "bucket that the time belongs to; total for all of them"),
        column("mean_ns", pa.float64(), "mean per counted step", "ns"),
        column("baseline", pa.string(), "variant that it is compared with", role="name"),
        column("delta_ns", pa.float64(), "difference from the baseline", "ns"),
        column(
            "delta_low_ns",
            pa.float64(),
            "lower end of its 95 % interval, over pairs of traces, or else over the steps of one trace each",
            "ns",
        ),
        column(
            "delta_high_ns",
            pa.float64(),
            "upper end of its 95 % interval, over pairs of traces, or else over the steps of one trace each",
            "ns",
        ),
        column("noise", pa.bool_(), "whether the scatter of the steps alone explains the difference"),
    ]
)
_SERIES = pa.schema(
    [
        column("line", pa.string(), "variant, and whether these are its first steps", role="name"),
        column("step", pa.int64(), "the N of ProfilerStep#N", role="identity"),
        column("step_ns", pa.int64(), "duration; empty where it is not known", "ns"),
        column("mark", pa.string(), "compiles, unknown or empty"),
    ]
)
_NOTES = pa.schema(
    [
        column("kind", pa.string(), "kind of note: inferred, cannot answer, warning, …"),
        column("variants", pa.string(), "variants that it is about; empty for all"),
        column("text", pa.string(), "the note"),
    ]
)
_SOURCE = pa.schema(
    [
        column("file", pa.string(), "source file", role="place"),
        column("line", pa.int64(), "line number in the file", role="identity"),
        column("variant", pa.string(), "name of the variant", role="name"),
        column("step_ns", pa.float64(), "cost of the line by itself, per step", "ns"),
        column("fused_ns", pa.float64(), "cost of kernels that it shares with other lines, counted only once", "ns"),
        column("source", pa.string(), "text of the line"),
    ]
)


class FlatTable(Struct, frozen=True):
    """A table with the title of its section, and the block that it was made from."""

    title: str
    rows: pa.Table
    block: Block


def flat_tables(report: Report) -> dict[str, FlatTable]:
    """Name → table, in the order of the report, its sentences first."""
    sentences = [
        {"section": section.title, "of": section.variant, "sentence": line}
        for section in report.sections
        for block in section.blocks
        if isinstance(block, Sentences)
        for line in block.lines
    ]
    tables = {"report": FlatTable("Report", pa.Table.from_pylist(sentences, SENTENCES), Sentences(()))}
    for section in report.sections:
        tables_of_section: list[tuple[str, pa.Table, Block]]
        tables_of_section = [(name, rows(), Sentences(())) for name, rows in section.contents.tables.items()]
        for block in section.blocks:
            if (flat_table := flat(block, section.id)) is not None:
                tables_of_section.append((*flat_table, block))
        for name, rows, block in tables_of_section:
            pieces = [tables[name].rows] if name in tables else []
            pieces.append(rows if VARIANT.name in rows.column_names else with_variant(rows, section.variant))
            together = pa.concat_tables(pieces, promote_options="permissive").unify_dictionaries()
            if isinstance(block, Excerpt):  # a line may be in several: beside a finding, and in its function
                together = together.group_by(together.column_names, use_threads=False).aggregate([])
            tables[name] = FlatTable(section.title, together, block)
    return tables


@singledispatch
def flat(block: Block, section: str) -> tuple[str, pa.Table] | None:
    """The content of a block of that section as a table, and its name; None if another table already has it."""
    raise TypeError(f"{type(block).__name__}: is not a kind of block")


@flat.register(Sentences)
def _(block: Sentences, section: str) -> None:
    return None  # the sentences of all sections form one table


@flat.register(Table)
def _(block: Table, section: str) -> tuple[str, pa.Table] | None:
    return (block.name, block.rows) if block.exported else None


@flat.register(Breakdown)
def _(block: Breakdown, section: str) -> tuple[str, pa.Table]:
    rows = [bucket_row(block, name, key) for key in block.keys for name in block.variants]
    return section, pa.Table.from_pylist(rows, schema=_BREAKDOWN)


def bucket_row(block: Breakdown, name: str, key: str) -> dict[str, Any]:
    """The columns of a breakdown's row about one bucket of one variant; no `delta_ns` if nothing is compared."""
    means, difference = block.means[name], block.differences.get(name)
    row = {"variant": name, "bucket": key or "total", "mean_ns": sum(means.values()) if key == TOTAL else means[key]}
    if difference is None:
        return row
    is_total = key == TOTAL
    interval = difference.delta_interval if is_total else difference.intervals and difference.intervals[key]
    return row | {
        "baseline": block.baselines[name],
        "delta_ns": difference.delta_ns if is_total else difference.parts[key],
        "delta_low_ns": interval[0] if interval else None,
        "delta_high_ns": interval[1] if interval else None,
        "noise": difference.is_noise(None if is_total else key) if interval else None,
    }


@flat.register(Series)
def _(block: Series, section: str) -> tuple[str, pa.Table] | None:
    if any(line.unit != "ns" for line in block.lines):
        return None
    rows = [
        {"line": line.name, "step": step, "step_ns": value, "mark": mark or None}
        for line in block.lines
        for step, value, mark in zip(line.steps, line.values, line.marks, strict=True)
    ]
    return section, pa.Table.from_pylist(rows, schema=_SERIES)


@flat.register(Notes)
def _(block: Notes, section: str) -> tuple[str, pa.Table]:
    rows = [
        {"kind": note.kind, "variants": ", ".join(note.variants) or None, "text": note.text} for note in block.notes
    ]
    return section, pa.Table.from_pylist(rows, schema=_NOTES)


@flat.register(Excerpt)
def _(block: Excerpt, section: str) -> tuple[str, pa.Table] | None:
    rows = [
        {"file": block.file, "line": number, "variant": name, "step_ns": alone, "fused_ns": fused, "source": line}
        for name in block.costs
        for number, line in enumerate(block.lines, block.first)
        for alone, fused in [(block.costs[name].get(number), block.fused.get(name, {}).get(number))]
        if alone is not None or fused is not None
    ]
    return "source", pa.Table.from_pylist(rows, schema=_SOURCE)
