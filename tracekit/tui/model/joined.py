"""Tables of several variants joined into one: a column for each variant, and differences that add up."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from tracekit.faces.shared.cells import DELTA
from tracekit.profile.where import LINE_COLUMNS
from tracekit.trace.schema import column, metadata

_LINE = LINE_COLUMNS.names


def joined(
    tables: Mapping[str, pa.Table], keys: Sequence[str], value: str, number: str, baselines: Mapping[str, str]
) -> pa.Table:
    """A row for each value of the keys; a variant without such a row has 0, and one that cannot answer has null.

    `value` is a quantity in ns, `number` a count. `baselines` names the variant that each is compared with. The line
    is that of the variant in which the row costs most.
    """
    rows: dict[tuple[Any, ...], dict[str, dict[str, Any]]] = {}
    for name, table in tables.items():
        for row in table.to_pylist():
            rows.setdefault(tuple(row[key] for key in keys), {})[name] = row
    first = next(iter(tables.values()))
    fields = [first.schema.field(key) for key in keys]
    columns: list[list[Any]] = [[key[k] for key in rows] for k in range(len(keys))]
    values = {name: [_value(by_variant, name, value) for by_variant in rows.values()] for name in tables}
    is_alone = len(tables) == 1  # its name is above the table
    for name in tables:
        meaning = metadata(first.schema.field(value), "comment")
        fields.append(column(f"{name}_ns", pa.float64(), meaning, "ns", title="takes" if is_alone else name))
        columns.append(values[name])
    for name in tables:
        base = baselines.get(name)
        if base is not None and base in tables and base != name:
            fields.append(column(f"{DELTA} {name}_ns", pa.float64(), f"against {base}", "ns", title=f"{DELTA} {name}"))
            columns.append(
                [
                    _difference(variant_ns, baseline_ns)
                    for variant_ns, baseline_ns in zip(values[name], values[base], strict=True)
                ]
            )
    for name in tables:
        meaning = metadata(first.schema.field(number), "comment")
        fields.append(column(f"n {name}", pa.float64(), meaning, title="n" if is_alone else f"n {name}"))
        columns.append([_value(by_variant, name, number) for by_variant in rows.values()])
    if all(place in first.schema.names for place in _LINE):
        costliest = [max(by_variant.values(), key=lambda row: row[value] or 0.0) for by_variant in rows.values()]
        fields += [first.schema.field(place) for place in _LINE]
        columns += [[row[place] for row in costliest] for place in _LINE]
    arrays = [pa.array(values, field.type) for values, field in zip(columns, fields, strict=True)]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def deltas(table: pa.Table) -> list[str]:
    """The columns that hold differences."""
    return [name for name in table.column_names if name.startswith(DELTA)]


def _value(by_variant: Mapping[str, dict[str, Any]], name: str, column_name: str) -> float | None:
    """The value of a variant: 0 if it has no such row, null if its row has no answer."""
    if name not in by_variant:
        return 0.0
    value = by_variant[name][column_name]
    return None if value is None else float(value)


def _difference(variant_ns: float | None, baseline_ns: float | None) -> float | None:
    return None if variant_ns is None or baseline_ns is None else variant_ns - baseline_ns
