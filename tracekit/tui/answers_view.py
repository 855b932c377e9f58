"""Every analysis as a screen shows it: a sentence per variant, and rows as text."""

from dataclasses import dataclass

from tracekit.analyses import Answer
from tracekit.faces.shared.cells import heading, is_number, lines, meaning, readable
from tracekit.report import Report
from tracekit.sanitize import sanitize

ROWS = 500  # what a person may scroll through; exports have them all
_MOST, _LEAST = 60, 18  # cells of text in a table; what is cut is told in full for the row under the cursor
_PADDING = 2


@dataclass(frozen=True)
class Column:
    """What a column is called, which side its values stand on, and what it means."""

    title: str
    number: bool
    meaning: str


@dataclass(frozen=True)
class Reply:
    """One variant's answer; `of` rows there are, `rows` holds the first of them."""

    name: str
    sentence: str
    columns: list[Column]
    rows: list[list[str]]
    of: int

    @property
    def cut(self) -> str:
        """`500 of 12,000 rows` where rows are left out, else nothing."""
        return f"{len(self.rows):,} of {self.of:,} rows" if len(self.rows) < self.of else ""

    def widths(self, width: int) -> list[int]:
        """A width for each column: numbers in full; what they leave of `width` goes to texts, the longest cut first."""
        full = [max(len(column.title), *(len(row[k]) for row in self.rows), 0) for k, column in enumerate(self.columns)]
        numbers = sum(own for own, column in zip(full, self.columns, strict=True) if column.number)
        texts = [own for own, column in zip(full, self.columns, strict=True) if not column.number]
        room, cap = width - numbers - _PADDING * len(full), _MOST
        while cap > _LEAST and sum(min(own, cap) for own in texts) > room:
            cap -= 1
        return [own if column.number else min(own, cap) for own, column in zip(full, self.columns, strict=True)]

    def uncut(self, row: int, widths: list[int]) -> list[tuple[str, str]]:
        """Of that row the values that are longer than their columns, with their titles."""
        values = zip(self.columns, self.rows[row], widths, strict=True)
        return [(column.title, value) for column, value, width in values if len(value) > width]


@dataclass(frozen=True)
class Asked:
    """One analysis of every variant."""

    name: str
    title: str
    replies: list[Reply]

    @property
    def meanings(self) -> dict[str, str]:
        """What the columns mean; a variant may have some that another has not."""
        return {column.title: column.meaning for reply in self.replies for column in reply.columns}


def asked(found: Report) -> list[Asked]:
    """The analyses in the order of the registry: one that is newly registered appears by itself."""
    by_name: dict[str, list[tuple[str, Answer]]] = {}
    for profile, answer in found.answers:
        by_name.setdefault(answer.analysis, []).append((profile.name, answer))
    return [
        Asked(sanitize(name), sanitize(given[0][1].title), [_reply(variant, answer) for variant, answer in given])
        for name, given in by_name.items()
    ]


def _reply(variant: str, answer: Answer) -> Reply:
    fields = readable(answer.table)
    return Reply(
        sanitize(variant),
        sanitize(answer.sentence),
        [Column(heading(field), is_number(field), meaning(field)) for field in fields],
        lines(answer.table.slice(0, ROWS), fields, None),
        answer.table.num_rows,
    )
