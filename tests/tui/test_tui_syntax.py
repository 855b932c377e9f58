"""The colours of source code, and the bar beside it."""

import pyarrow as pa
import pytest
from rich.style import Style

from tracekit.trace.schema import column
from tracekit.tui.model.content import Code
from tracekit.tui.model.panes.owners import heat
from tracekit.tui.model.sheet import Sheet
from tracekit.tui.widgets.below import around
from tracekit.tui.widgets.columns import MOST, parts, pieces
from tracekit.tui.widgets.grid import Styles, TableLines, Window

LINES = (
    "def step(x):  # one",
    '    """A text',
    '    of two lines."""',
    "",
    "    return x + 1.5 if x else None",
)


def kinds(number):
    return [(text, kind) for text, kind in pieces(LINES[number], parts(LINES)[number]) if kind]


@pytest.mark.parametrize(
    ("number", "coloured"),
    [
        (0, [("def", "keyword"), ("step", "name"), ("# one", "comment")]),
        (1, [('"""A text', "string")]),
        (2, [('    of two lines."""', "string")]),
        (3, []),
        (4, [("return", "keyword"), ("1.5", "number"), ("if", "keyword"), ("else", "keyword"), ("None", "keyword")]),
    ],
)
def test_parts_of_a_line_have_a_kind(number, coloured):
    assert kinds(number) == coloured
    assert "".join(text for text, _ in pieces(LINES[number], parts(LINES)[number])) == LINES[number]


def test_a_line_that_is_cut_keeps_what_fits():
    assert pieces("def st…", parts(LINES)[0]) == [("def", "keyword"), (" ", ""), ("st…", "name")]


def test_a_file_that_is_too_long_has_no_colours():
    assert pieces("def step(x):", parts(("def step(x):",) * (MOST + 1))[0]) == [("def step(x):", "")]


@pytest.mark.parametrize(("part", "bar"), [(0.0, ""), (0.001, "▏"), (0.5, "████"), (0.6, "████▉"), (1.0, "████████")])
def test_whatever_costs_something_has_a_bar(part, bar):
    assert heat(part) == bar


def test_a_line_of_source_is_drawn_in_its_colours_in_any_order():
    colours = {"keyword": Style(color="blue"), "number": Style(color="red")}
    styles = Styles(*[Style()] * 7, colours)
    rows = pa.table(
        [pa.array([1.0, 2.0, 3.0, 0.0, 5.0]), pa.array(LINES)],
        schema=pa.schema([column("cost_ns", pa.float64(), "", "ns"), column("text", pa.string(), "", role="code")]),
    )
    sheet = Sheet("source", rows).sorted_by("cost_ns", descending=True)
    first = TableLines(sheet, 80, styles).row(0, Window(0, 0, 5), False)
    said = {segment.text.strip(): segment.style.color.name for segment in first if segment.style.color is not None}
    assert said == {"return": "blue", "1.5": "red", "if": "blue", "else": "blue", "None": "blue"}


def test_the_excerpt_has_costs_in_its_margin_and_no_bar():
    kinds = [
        column("eager_ns", pa.float64(), "", "ns"),
        column("share", pa.float64(), "", "share"),
        column("heat", pa.string(), "", role="bar"),
        column("line", pa.int64(), "", role="identity"),
        column("text", pa.string(), "", role="code"),
    ]
    rows = pa.table([[2e6, 0.0], [0.5, 0.0], ["████", ""], [1, 2], ["one()", "two()"]], schema=pa.schema(kinds))
    code = Code(Sheet("source", rows), "x.py", 1)
    assert around(code, 1, 2).plain == "▶2.00 ms    1 one()\n            2 two()\n"
    assert dict(code.sheet.row_in_full(0)) == {"eager": "2.00 ms", "share": "50.0 %", "line": "1", "text": "one()"}
