"""The values of a column: which of some rows contain a word, and how the values are ordered."""

from typing import Any

import numpy as np
import pyarrow as pa

from tracekit.intervals import Bools, Ints


def holding(column: pa.Array, word: str) -> Bools:
    """Which texts contain a word, ignoring case."""
    if pa.types.is_dictionary(column.type):
        labels = np.append(holding(column.dictionary, word), False)
        indices = column.indices.fill_null(len(labels) - 1).to_numpy(zero_copy_only=False)
        holds: Bools = labels[indices]
        return holds
    import pyarrow.compute as pc  # only sorting and filtering need it: it takes a tenth of a second to import

    contain: Bools = pc.match_substring(column, word, ignore_case=True).fill_null(False).to_numpy(zero_copy_only=False)
    return contain


def in_order(values: pa.Array, descending: bool, by_size: bool = False) -> Ints:
    """The order in which these values come: which is first, second, and so on; `by_size` leaves their signs out."""
    import pyarrow.compute as pc

    order = pc.array_sort_indices(
        pc.abs(values) if by_size else _comparable(values), order="descending" if descending else "ascending"
    )
    places: Ints = order.to_numpy().astype(np.int64)
    return places


def _comparable(values: pa.Array) -> pa.Array:
    """The ranks of the texts, if few distinct texts fill many rows: numbers are sorted faster."""
    import pyarrow.compute as pc

    if not pa.types.is_dictionary(values.type):
        return values
    return pc.sort_indices(pc.array_sort_indices(values.dictionary)).cast(pa.int32()).take(values.indices)


def values_at(column: pa.ChunkedArray, rows: Ints) -> list[Any]:
    """The values of a few rows. (`take` would import `pyarrow.compute`, for which the first screen need not wait.)"""
    whole = in_one(column)
    return [whole[row].as_py() for row in rows.tolist()]


def in_one(column: pa.ChunkedArray) -> pa.Array:
    """A column in one piece."""
    if column.num_chunks == 1:
        return column.chunk(0)
    whole = column.combine_chunks()
    return whole.chunk(0) if isinstance(whole, pa.ChunkedArray) and whole.num_chunks == 1 else whole


def is_text(kind: pa.DataType) -> bool:
    """Whether a column can be searched for words."""
    return bool(pa.types.is_string(kind) or (pa.types.is_dictionary(kind) and pa.types.is_string(kind.value_type)))
