"""Every table of a report: what exports write and notebooks get."""

from collections.abc import Iterator

import pyarrow as pa

from tracekit.report.blocks import Table
from tracekit.report.model import Report
from tracekit.report.section import Section
from tracekit.tables import named, tables


def every_table(report: Report) -> dict[str, pa.Table]:
    """Name → table: those of the variants, and those that sections bring along.

    A table begins with the variant it is of; one of the whole run has no such column.
    """
    found = tables(report.profiles)
    parts: dict[str, list[pa.Table]] = {}
    for section in report.sections:
        for name, rows in _of(section):
            if name not in found:
                parts.setdefault(name, []).append(named(rows, section.variant) if section.variant else rows)
    return found | {name: pa.concat_tables(each).unify_dictionaries() for name, each in parts.items()}


def _of(section: Section) -> Iterator[tuple[str, pa.Table]]:
    yield from section.contents.tables.items()
    for block in section.blocks:
        if isinstance(block, Table) and block.exported:
            yield block.name, block.rows
