"""One value of an answer's table as text, by the unit of its column."""

from collections.abc import Callable

import pyarrow as pa

from tracekit.sanitize import sanitize
from tracekit.units import count, duration, percent, size

_BY_UNIT: dict[str, Callable[[float], str]] = {
    "ns": duration,
    "B": size,
    "share": percent,
}
_NAME_WIDTH = 60


def unit(field: pa.Field) -> str:
    """The unit that the schema gives a column."""
    return str((field.metadata or {}).get(b"unit", b"").decode())


def heading(field: pa.Field) -> str:
    """The column's name without its unit, which every value carries."""
    return sanitize(field.name.removesuffix("_ns").removesuffix("_bytes").replace("_", " "))


def cell(value: object, field: pa.Field, width: int | None = _NAME_WIDTH) -> str:
    """A value as people read it; absent is `–`, never 0."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        by_unit = _BY_UNIT.get(unit(field))
        if by_unit is not None:
            return by_unit(value)
        return str(value) if field.name in _IDENTITIES else count(value)
    return sanitize(str(value), width)


# Whole numbers that name a thing: they are not grouped by thousands.
_IDENTITIES = {"step", "event", "launch", "activity", "line"}
# What ties a row to other tables, or to a clock, helps programs and not readers.
_PLUMBING = {"event", "launch", "activity", "stack"}


def readable(table: pa.Table) -> list[pa.Field]:
    """The columns to show people: no plumbing, and none in which nothing stands."""
    return [
        field
        for field in table.schema
        if field.name not in _PLUMBING
        and unit(field) != "clock"
        and (not table.num_rows or table[field.name].null_count < table.num_rows)
    ]


def is_number(field: pa.Field) -> bool:
    """Whether a column reads better flush right."""
    return bool(pa.types.is_integer(field.type) or pa.types.is_floating(field.type))
