"""All tables of a report, those of its variants and those of its sections: what exports write and notebooks get."""

from collections.abc import Iterator

import pyarrow as pa

from tracekit.report.blocks import Table
from tracekit.report.model import Report
from tracekit.report.section import Section
from tracekit.tables import VARIANT, Stream, streams, whole


def every_table(report: Report) -> dict[str, Stream]:
    """Tables by name: those of the variants, and those that sections add; none of them is made yet.

    The first column is the variant; a table about the whole run has no such column.
    """
    by_name = streams(report.profiles)
    of_variants = set(by_name)
    for section in report.sections:
        for name, rows in _tables_of(section):
            if name not in of_variants:
                schema = rows.schema if section.variant is None else rows.schema.insert(0, VARIANT)
                by_name.setdefault(name, Stream(schema, [])).sources.append((section.variant, whole(rows)))
    return by_name


def _tables_of(section: Section) -> Iterator[tuple[str, pa.Table]]:
    for name, rows in section.contents.tables.items():
        yield name, rows()
    for block in section.blocks:
        if isinstance(block, Table) and block.exported:
            yield block.name, block.rows
