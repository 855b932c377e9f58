"""HTA's data frames as Arrow tables: plain columns, for Parquet and for faces."""

import re
from collections.abc import Sequence

import pandas as pd
import pyarrow as pa

_CODED = re.compile(r"(?:.*_)?(?:cat|name)")


def with_names(frame: pd.DataFrame, symbols: Sequence[str]) -> pd.DataFrame:
    """The frame with names and categories where HTA answers with their numbers in its table of symbols."""
    coded = [
        name
        for name, kind in frame.dtypes.items()
        if isinstance(name, str) and _CODED.fullmatch(name) and pd.api.types.is_integer_dtype(kind)
    ]
    named_frame = frame.copy()
    for column in coded:
        texts = [symbols[code] if 0 <= code < len(symbols) else None for code in frame[column].tolist()]
        named_frame[column] = pd.Series(texts, frame.index, "object")
    return named_frame


def as_table(frame: pd.DataFrame) -> pa.Table:
    """A table with the frame's index as columns, unless that only counts, and multi-level column names joined."""
    counts = frame.index.nlevels == 1 and frame.index.name is None and frame.index.dtype.kind == "i"
    plain = frame.reset_index(drop=counts)
    columns = {}
    names: list[object] = [*plain.columns]
    for index, name in enumerate(names):
        flat_name = "_".join(str(part) for part in name if part != "") if isinstance(name, tuple) else str(name)
        cells = plain.iloc[:, index]
        try:
            columns[flat_name] = pa.Array.from_pandas(cells)
        except (pa.ArrowInvalid, pa.ArrowTypeError):  # a mixture of numbers and text: processes, threads
            columns[flat_name] = pa.array([None if cell is None else str(cell) for cell in cells], pa.string())
    return pa.table(columns)
