"""What does each line of yours cost, in every variant? Of captures that recorded the lines."""

import numpy as np
import pyarrow as pa

from tracekit import lines_file
from tracekit.lines.means import LINES, table
from tracekit.profile import Profile
from tracekit.report.line_costs import OfVariant, SideBySide, of_variant
from tracekit.report.model import Report
from tracekit.report.registry import of_run
from tracekit.report.section import Contents
from tracekit.tables import VARIANT


@of_run("lines", "What each line of yours costs", rank=35)
def lines(report: Report) -> Contents | None:
    """Rows side by side, and the source of the dearest function; a bare trace is asked by `tracekit lines`."""
    captured = [profile for profile in report.profiles if _has_lines(profile)]
    view = "wall" if any(profile.means["wall"] is not None for profile in captured) else "host"
    found = SideBySide.of([of_variant(profile, view) for profile in captured])
    if not found.variants:
        return None
    own = max(1 - each.groups.get((), 0.0) / (each.total_ns or 1.0) for each in found.variants)
    return Contents(tuple(found.blocks()), worth=own, tables={"lines": _every_row(found)})


def _has_lines(profile: Profile) -> bool:
    return profile.detail_path is not None and lines_file.lines_path(profile.detail_path).is_file()


def _every_row(found: SideBySide) -> pa.Table:
    """What exports write: a row for each owner, view and bucket of each variant."""
    parts = [_named(each, table(each.ownership, each.means, found.row)) for each in found.variants]
    return pa.concat_tables([LINES.insert(0, VARIANT).empty_table(), *parts]).unify_dictionaries()


def _named(variant: OfVariant, rows: pa.Table) -> pa.Table:
    names = pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(rows), np.int32)), [variant.name])
    return rows.add_column(0, VARIANT, names)
