"""A table as screens show it: sorted, filtered, and with text made only for the rows that are shown.

The values of a column: which of some rows contain a word, and how the values are ordered.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from msgspec import Struct, field
from msgspec.structs import replace

from tracekit.base.intervals import Bools, Ints
from tracekit.base.names import sanitize, short
from tracekit.base.units import duration
from tracekit.faces.shared.cells import DELTA, NOTHING, cell, heading, is_number, meaning, readable, role, texts, unit
from tracekit.tui.model.selection import Selection
from tracekit.vocabulary.kernel_names import distinct_short_names

_LONGEST = 1000  # characters of a cell
_READ, _WORDS = 20, 5  # rows that decide whether a column holds sentences, and the spaces in one
_MEASURED = 200  # rows that decide how wide a column is
_LABELS = 5_000  # kernels whose short names are made distinct
_OF_ALL_ROWS = {"table", "fields", "details", "titles", "numbers", "sentences", "widths", "_kernels", "_extremes"}
ON_TIMELINE: Literal["on the timeline"] = "on the timeline"
# What to show next, the run to open, or that what the row names is to be found on the timeline.
Destination = Selection | Path | Literal["on the timeline"] | None
Enter = Callable[[int], Destination]


def nowhere(_: int) -> None:
    """What Enter does if a row leads nowhere."""


class Card(Struct, frozen=True):
    """A row that is drawn as paragraphs: figures line by line on their left, a title, and below it the other parts.

    Where room is short, cards have less than all parts: the first parts of all cards come before the second of any.
    """

    figures: tuple[tuple[str, ...], ...]
    title: str
    parts: tuple[str, ...]


class Sheet(Struct, frozen=True, dict=True):
    """Rows of an Arrow table, whose fields give unit, meaning and role. Rows are numbered as in the table.

    `enter` says what a row leads to. Columns whose name begins with Δ are differences, sorted by their size whatever
    their sign, and zeros of quantities that add up are shown as dots. `marks` are signs before the first column and
    their colours, by row. If there are `cards`, one for each row, these are drawn in place of the columns.
    """

    name: str
    rows: pa.Table
    title: str = ""
    enter: Enter = nowhere
    sort: tuple[str, bool] | None = None  # column, and whether the largest come first
    pattern: str = ""
    marks: Mapping[int, tuple[str, str]] = field(default_factory=dict)
    sort_keys: Mapping[str, str] = field(default_factory=dict)  # columns of text → the columns by which they are sorted
    variant: str = ""  # the variant that every row is of, if they have one in common
    cards: tuple[Card, ...] = ()
    variants: tuple[str, ...] = ()  # whose names occur in titles: if room is short, what they share is left out

    @cached_property
    def table(self) -> pa.Table:
        """The rows in one piece: taking rows from many pieces is slow."""
        return self.rows.combine_chunks()

    @cached_property
    def fields(self) -> list[pa.Field]:
        """The columns that are shown."""
        return readable(self.table, full=False)

    @cached_property
    def details(self) -> list[pa.Field]:
        """The columns that are shown only for the row under the cursor."""
        shown_names = {field.name for field in self.fields}
        return [field for field in readable(self.table) if field.name not in shown_names]

    @cached_property
    def titles(self) -> list[str]:
        """The titles of the columns, all different (a count and a duration can share one), with names of variants."""
        titles = [heading(field) for field in self.fields]
        alike = {title for title in titles if titles.count(title) > 1}
        return [
            field.name.replace("_", " ") if title in alike else title
            for title, field in zip(titles, self.fields, strict=True)
        ]

    def titles_within(self, width: int) -> list[str]:
        """The titles; in those that are longer than `width`, names of variants are shortened as far as needed."""
        names = sorted(map(sanitize, self.variants), key=len, reverse=True)
        titles = []
        for title in self.titles:
            name = next((name for name in names if name in title), "")
            room = max(width - len(title) + len(name), 1)
            is_long = len(title) > width and name
            titles.append(title.replace(name, short(names, room)[names.index(name)]) if is_long else title)
        return titles

    @cached_property
    def numbers(self) -> list[bool]:
        """Which columns are aligned to the right."""
        return [is_number(field) for field in self.fields]

    @cached_property
    def sentences(self) -> list[bool]:
        """Which columns hold sentences: these are cut at the end, whereas a name may be distinguished by its end."""
        first = [self._texts(field, self.order[:_READ]) for field in self.fields]
        return [
            role(field) == "code" or (role(field) == "" and any(text.count(" ") >= _WORDS for text in texts))
            for field, texts in zip(self.fields, first, strict=True)
        ]

    @property
    def meanings(self) -> dict[str, str]:
        """The meanings of the columns, by title."""
        return {title: meaning(field) for title, field in zip(self.titles, self.fields, strict=True) if meaning(field)}

    @cached_property
    def order(self) -> Ints:
        """The rows that are shown, in the order in which they are shown."""
        rows = np.flatnonzero(self._fitting) if self.pattern else np.arange(self.table.num_rows)
        if self.sort is not None and self.sort[0] in self.table.column_names:
            column, descending = self.sort
            values = in_one(self.table[self.sort_keys.get(column, column)])
            values = values.take(pa.array(rows)) if self.pattern else values
            rows = rows[in_order(values, descending, by_size=column.startswith(DELTA))]
        return rows

    def __len__(self) -> int:
        return len(self.order)

    def row_at(self, index: int) -> int:
        """The row of the table that is shown at this position."""
        return int(self.order[index])

    def destination(self, index: int) -> Destination:
        """Where Enter leads from the row shown at this position."""
        return self.enter(self.row_at(index)) if 0 <= index < len(self) else None

    def cells(self, start: int, stop: int) -> list[list[str]]:
        """The rows shown from `start` to before `stop`, as text."""
        rows = self.order[start:stop]
        columns = [self._texts(field, rows) for field in self.fields]
        return [list(values) for values in zip(*columns, strict=True)] if columns else [[] for _ in rows]

    def row_in_full(self, index: int) -> list[tuple[str, str]]:
        """Title and value of everything that is known about a row, with nothing shortened."""
        rows = self.order[index : index + 1]
        # The titles of the details are without the name of the variant if there is only one.
        prefix = f"{sanitize(self.variants[0])} " if len(self.variants) == 1 else ""
        titles = [*self.titles, *(heading(field).removeprefix(prefix) for field in self.details)]
        titled_texts = []
        for title, column_field in zip(titles, [*self.fields, *self.details], strict=True):
            (value,) = values_at(self.table[column_field.name], rows)
            if value is not None and role(column_field) != "bar":
                is_whole = role(column_field) in ("kernel", "place")
                text = sanitize(str(value), _LONGEST) if is_whole else self._texts(column_field, rows)[0]
                titled_texts.append((title, text))
        return titled_texts

    @cached_property
    def widths(self) -> list[int]:
        """How wide the values of each column are, judging by some of its rows and by its extreme numbers."""
        rows = self.table.num_rows
        spread = np.arange(0, rows, max(-(-rows // _MEASURED), 1))
        sample_rows = np.concatenate((spread, self._extremes))
        return [max(map(len, self._texts(field, sample_rows)), default=0) for field in self.fields]

    def sorted_by(self, column: str, descending: bool) -> "Sheet":
        """The sheet with its rows sorted by a column."""
        return self._changed(sort=(column, descending))

    def filtered(self, pattern: str) -> "Sheet":
        """Only the rows whose texts contain every word of the pattern, ignoring case."""
        return self._changed(pattern=pattern)

    def _changed(self, **changes: Any) -> "Sheet":
        """A sheet with the same rows, which keeps everything that was computed from them."""
        sheet = replace(self, **changes)
        vars(sheet).update({name: value for name, value in vars(self).items() if name in _OF_ALL_ROWS})
        return sheet

    @property
    def shown(self) -> pa.Table:
        """The rows on screen, for exports: in the same order, with every column."""
        return self.table.take(pa.array(self.order))

    def _texts(self, field: pa.Field, rows: Ints) -> list[str]:
        values = values_at(self.table[field.name], rows)
        if unit(field) == "ns":
            signed = field.name.startswith(DELTA)
            return [NOTHING if value == 0 else duration(value, signed=signed) for value in values]
        if role(field) == "kernel":
            return [self._kernels.get(value, cell(value, field, _LONGEST)) for value in values]
        if role(field) == "identity":
            return ["–" if value is None else str(value) for value in values]
        if pa.types.is_nested(field.type):
            return texts(values, field, _LONGEST)
        distinct = [*dict.fromkeys(values)]  # long tables have few distinct values
        text_by_value = dict(zip(distinct, texts(distinct, field, _LONGEST), strict=True))
        return [text_by_value[value] for value in values]

    @cached_property
    def _kernels(self) -> dict[str, str]:
        """Short names of the kernels, all of them different."""
        columns = [self.table[field.name] for field in self.fields if role(field) == "kernel"]
        names = [name for column in columns for name in column.unique().to_pylist() if name is not None][:_LABELS]
        return {name: sanitize(short_name) for name, short_name in zip(names, distinct_short_names(names), strict=True)}

    @cached_property
    def _extremes(self) -> Ints:
        columns = [self.table[field.name] for field, number in zip(self.fields, self.numbers, strict=True) if number]
        numeric = [column for column in columns if not pa.types.is_string(column.type) and len(column)]
        values = [column.to_numpy() for column in numeric if column.null_count < len(column)]
        return np.array([end(value) for value in values for end in (np.nanargmin, np.nanargmax)], np.int64)

    @cached_property
    def _fitting(self) -> Bools:
        matches = np.ones(self.table.num_rows, bool)
        columns = []
        for text_field in [*self.fields, *self.details]:
            if not is_text(text_field.type):
                continue
            column = in_one(self.table[text_field.name])
            if role(text_field) == "kernel":  # the form shown is searched beside the full one
                labels = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
                searchable = [f"{name} {self._kernels.get(name, '')}" for name in labels.dictionary.to_pylist()]
                column = pa.DictionaryArray.from_arrays(labels.indices, pa.array(searchable, pa.string()))
            columns.append(column)
        for word in self.pattern.split():
            holds = np.zeros(self.table.num_rows, bool)
            for column in columns:
                holds |= holding(column, word)
            matches &= holds
        return matches


assert vars(Sheet).keys() >= _OF_ALL_ROWS  # a property that was renamed would be computed for every sheet anew


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

    if by_size:
        values = pc.abs(values)
    elif pa.types.is_dictionary(values.type):
        # The ranks of the texts, if few distinct texts fill many rows: numbers are sorted faster.
        values = pc.sort_indices(pc.array_sort_indices(values.dictionary)).cast(pa.int32()).take(values.indices)
    order = pc.array_sort_indices(values, order="descending" if descending else "ascending")
    places: Ints = order.to_numpy().astype(np.int64)
    return places


def values_at(column: pa.ChunkedArray, rows: Ints) -> list[Any]:
    """The values of a few rows. (`take` would import `pyarrow.compute`, for which the first screen need not wait.)"""
    array = in_one(column)
    return [array[row].as_py() for row in rows.tolist()]


def in_one(column: pa.ChunkedArray) -> pa.Array:
    """A column in one piece."""
    if column.num_chunks == 1:
        return column.chunk(0)
    combined = column.combine_chunks()
    return combined.chunk(0) if isinstance(combined, pa.ChunkedArray) and combined.num_chunks == 1 else combined


def is_text(kind: pa.DataType) -> bool:
    """Whether a column can be searched for words."""
    return bool(pa.types.is_string(kind) or (pa.types.is_dictionary(kind) and pa.types.is_string(kind.value_type)))


def table_from(columns: Iterable[tuple[pa.Field, Sequence[object]]]) -> pa.Table:
    """A table of these columns, each with its values."""
    pairs = [*columns]
    arrays = [pa.array(values, field.type) for field, values in pairs]
    return pa.Table.from_arrays(arrays, schema=pa.schema([field for field, _ in pairs]))
