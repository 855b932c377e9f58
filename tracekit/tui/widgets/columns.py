"""How a table and a text are set: how wide columns are and what their headings say, and which letters of source code
are keywords, strings, numbers, comments or names.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate, pairwise, product

from pygments.lexers.python import PythonLexer
from pygments.token import Comment, Keyword, Name, Number, Operator, String, _TokenType
from rich.style import Style

from tracekit.base.names import cut_apart, cut_off, sanitize
from tracekit.timeline.categories import readable_on
from tracekit.tui.model.sheet import Sheet

GAP = 2  # cells between columns
_MIN_TEXT, _MIN_NAME, _LEGIBLE, _MAX_TEXT = 12, 28, 36, 60  # cells of a text; the first column is the name
_HEADS = (40, 28, 20, 14, 10)  # cells of a heading over numbers: the largest that fits is used
CODE = ("keyword", "string", "number", "comment", "name")  # the kinds of part that have a colour
Part = tuple[int, str]  # where a part of a line begins, and its kind; that of others is empty
MOST = 20_000  # lines of a file: more would take longer than a second
_KINDS: tuple[tuple[_TokenType, str], ...] = (
    (Keyword, "keyword"),
    (Operator.Word, "keyword"),
    (String, "string"),
    (Number, "number"),
    (Comment, "comment"),
    (Name.Function, "name"),
    (Name.Class, "name"),
    (Name.Decorator, "name"),
)


def column_widths(sheet: Sheet, room: int) -> list[int]:
    """Numbers get the width they need; headings and texts share what is left, and the longest are cut first."""
    numbers, values = sheet.numbers, sheet.widths
    texts = [k for k, number in enumerate(numbers) if not number]
    least_widths = {k: _MIN_TEXT if k else _MIN_NAME for k in texts}
    for floor, head in product((dict.fromkeys(texts, _LEGIBLE), least_widths), _HEADS):
        titles = [len(title) + 1 for title in sheet.titles_within(head)]
        widths = [
            max(value, min(title, head + 1)) if number else min(max(value, title), _MAX_TEXT)
            for value, title, number in zip(values, titles, numbers, strict=True)
        ]
        if needed([min(width, floor.get(k, width)) for k, width in enumerate(widths)]) <= room:
            break
    least_widths = {k: min(widths[k], width) for k, width in least_widths.items()}
    while needed(widths) > room and (wide := [k for k in texts if widths[k] > least_widths[k]]):
        widths[max(wide, key=lambda k: widths[k] - least_widths[k])] -= 1
    for k in texts:  # what remains goes to the texts that are cut
        widths[k] += min(max(values[k] - widths[k], 0), max(room - needed(widths), 0))
    return widths


def needed(widths: list[int]) -> int:
    """The cells of all columns and of the gaps between them."""
    return sum(widths) + GAP * max(len(widths) - 1, 0)


def column_at(widths: Sequence[int], cell: int) -> int | None:
    """The column to which a cell, or the gap that it is in, belongs; None beyond the last one."""
    ends = accumulate(width + GAP for width in widths)
    return next((k for k, end in enumerate(ends) if cell < end), None)


def arrow(sheet: Sheet, name: str) -> str:
    """What follows the title of a column by which the rows are sorted."""
    return {(name, True): "▼", (name, False): "▲"}.get(sheet.sort or ("", True), "")


def heading(sheet: Sheet, widths: list[int]) -> str:
    """The line above the rows, with an arrow after the title of the column by which they are sorted; titles that do not
    fit are cut so that they remain distinguishable.
    """
    rooms, text = [max(width - 1, 1) for width in widths], ""
    titles = [cut_apart(sheet.titles_within(room), room)[k] for k, room in enumerate(rooms)]
    for title, width, field, number in zip(titles, widths, sheet.fields, sheet.numbers, strict=True):
        sign = arrow(sheet, field.name)
        label = f"{sanitize(title, width - len(sign))}{sign}"
        text += (label.rjust(width) if number else label.ljust(width)) + " " * GAP
    return text


def cut_columns(sheet: Sheet, rows: Sequence[Sequence[str]], widths: list[int]) -> list[list[str]]:
    """The cells that are on screen together, column by column; names are cut so that they remain distinguishable."""
    return [
        [cut_off(text, width) for text in column] if is_sentence else cut_apart([*column], width)
        for column, width, is_sentence in zip(zip(*rows, strict=True), widths, sheet.sentences, strict=True)
    ]


def on(colour: str) -> Style:
    """Black or white on the colour, whichever is easier to read."""
    return Style(color=readable_on(colour), bgcolor=colour)


@lru_cache(maxsize=4)
def parts(lines: tuple[str, ...]) -> list[list[Part]]:
    """The parts of each line of a Python file, from the first letter on; none of a file that is too long."""
    of_lines: list[list[Part]] = [[] for _ in lines]
    line_index, column = 0, 0
    lexer = PythonLexer(stripnl=False, ensurenl=False)
    for token, text in lexer.get_tokens("\n".join(lines)) if len(lines) <= MOST else ():
        kind = next((kind for token_type, kind in _KINDS if token in token_type), "")
        for piece in text.splitlines(keepends=True):
            if line_index < len(lines):
                of_lines[line_index].append((column, kind))
            column += len(piece)
            if piece.endswith("\n"):
                line_index, column = line_index + 1, 0
    return of_lines


def pieces(text: str, line_parts: Sequence[Part]) -> list[tuple[str, str]]:
    """A text of one line, or as much of it as fits, divided into its parts."""
    starts = [*line_parts, (len(text), "")] if line_parts else [(0, ""), (len(text), "")]
    return [(text[start:end], kind) for (start, kind), (end, _) in pairwise(starts) if text[start:end]]
