"""All tables of a report, which exports write and notebooks get: those of its variants, each below the other – what was
recorded, where the time went, and the answers of analyses – and those of its sections.
"""

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
from msgspec import Struct

from tracekit.analyses import answers
from tracekit.engine.attribution import SEGMENTS
from tracekit.profile import Profile
from tracekit.report.blocks import Table
from tracekit.report.model import Report
from tracekit.trace.schema import EVENTS, LABEL, TRACKS, column, joined

_ROWS = 1 << 17  # events in one piece
VARIANT = column("variant", LABEL, "name of the variant")
ATTRIBUTION = pa.schema(
    [
        column("step", pa.int64(), "the N of ProfilerStep#N"),
        column("view", LABEL, "wall or host"),
        column("bucket", LABEL, "bucket that the time belongs to"),
        column("dur_ns", pa.int64(), "time in the bucket; null where the view cannot be answered for this step", "ns"),
        column("steady", pa.bool_(), "whether nothing is compiled in the step"),
    ]
)
_Part = tuple[str, pa.Schema, Callable[[], Iterator[pa.Table]]]


class Stream(Struct, frozen=True):
    """A table that is made on demand, piece by piece, because it may be larger than memory."""

    schema: pa.Schema
    sources: list[tuple[str | None, Callable[[], Iterator[pa.Table]]]]  # variant, and its pieces

    def pieces(self) -> Iterator[pa.Table]:
        """The pieces, variant after variant. The first column is the variant, if the piece belongs to one."""
        for variant, pieces in self.sources:
            for piece in pieces():
                yield with_variant(piece, variant)

    def table(self) -> pa.Table:
        """The whole table."""
        return joined(self.schema, self.pieces())


def streams(profiles: list[Profile]) -> dict[str, Stream]:
    """Tables by name, none of them made yet. The first column is the variant; field metadata explains each column.

    `events`, `tracks`, `attribution`, `segments`, and for each analysis its rows under its name; if faces show a
    summary of the rows, that, too, as `<name>_summary`.
    """
    by_name: dict[str, Stream] = {}
    for profile in profiles:
        for name, schema, pieces in _of(profile):
            stream = by_name.setdefault(name, Stream(schema.insert(0, VARIANT), []))
            stream.sources.append((profile.name, pieces))
    return by_name


def _of(profile: Profile) -> Iterator[_Part]:
    yield "events", EVENTS, lambda: _slices(profile.trace.events)
    yield "tracks", TRACKS, lambda: iter([profile.trace.tracks.cast(TRACKS)])
    yield "attribution", ATTRIBUTION, lambda: iter([_attribution(profile)])
    yield (
        "segments",
        SEGMENTS,
        lambda: (piece for view in ("wall", "host") for piece in profile.attribution.segments_of(view)),
    )
    for answer in answers(profile):
        name, summary = answer.analysis, answer.table
        if answer.rows is not None:
            yield name, answer.rows.schema, answer.rows.pieces
            name = f"{name}_summary"
        yield name, summary.schema, whole(summary)


def whole(table: pa.Table) -> Callable[[], Iterator[pa.Table]]:
    """A table that exists already, as one piece."""
    return lambda: iter([table])


def _slices(table: pa.Table) -> Iterator[pa.Table]:
    for start in range(0, len(table), _ROWS):
        yield table.slice(start, _ROWS).cast(EVENTS)


def with_variant(part: pa.Table, variant: str | None) -> pa.Table:
    """The part of a table, with the variant that it belongs to as its first column; as it is if it belongs to none."""
    if variant is None:
        return part
    names = pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(part), np.int32)), [variant])
    return part.add_column(0, VARIANT, names)


def _attribution(profile: Profile) -> pa.Table:
    """Long form: one row per step, view and bucket."""
    attribution, numbers = profile.attribution, profile.trace.steps.number
    views = []
    for view in attribution.views.values():
        width, length = len(view.keys), len(numbers) * len(view.keys)
        views.append(
            pa.Table.from_arrays(
                [
                    pa.array(np.repeat(np.array(numbers, np.int64), width)),
                    pa.DictionaryArray.from_arrays(pa.array(np.zeros(length, np.int32)), [view.name]),
                    pa.DictionaryArray.from_arrays(
                        pa.array(np.tile(np.arange(width, dtype=np.int32), len(numbers))), list(view.keys)
                    ),
                    pa.array(view.totals.ravel(), mask=np.repeat(~view.known, width)),
                    pa.array(np.repeat(~attribution.compiles, width)),
                ],
                schema=ATTRIBUTION,
            )
        )
    return pa.concat_tables(views).unify_dictionaries()


def every_table(report: Report) -> dict[str, Stream]:
    """Tables by name: those of the variants, and those that sections add; none of them is made yet.

    The first column is the variant; a table about the whole run has no such column.
    """
    by_name = streams(report.profiles)
    of_variants = set(by_name)
    for section in report.sections:
        tables = {name: make() for name, make in section.contents.tables.items()}
        tables |= {block.name: block.rows for block in section.blocks if isinstance(block, Table) and block.exported}
        for name, rows in tables.items():
            if name not in of_variants:
                schema = rows.schema if section.variant is None else rows.schema.insert(0, VARIANT)
                by_name.setdefault(name, Stream(schema, [])).sources.append((section.variant, whole(rows)))
    return by_name
