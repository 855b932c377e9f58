r"""The report as LaTeX: booktabs tables for a paper, to be taken in by `\input`."""

import sys
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import singledispatch

from tracekit.faces import Options, face
from tracekit.faces.shared.grid import Grid, grid
from tracekit.faces.shared.margins import margins
from tracekit.faces.shared.sparks import legend
from tracekit.faces.shared.wording import interval, is_noise, label, note_text, share
from tracekit.report import Report
from tracekit.report.blocks import Block, Excerpt, Line, Notes, Sentences, Series, Table
from tracekit.report.breakdown import TOTAL, Breakdown
from tracekit.report.outline import Chapter, outline
from tracekit.sanitize import sanitize
from tracekit.units import thousandths

_TEXT = ("backslash", "asciitilde", "asciicircum", "less", "greater", "bar", "asciigrave")
_MATHS = {"−": "-", "×": r"\times", "±": r"\pm", "·": r"\cdot", "Δ": r"\Delta", "→": r"\to", "≥": r"\ge", "≤": r"\le"}
_SIGNS = {sign: f"\\{sign}" for sign in "&%$#_{}"}
_SIGNS |= {sign: rf"\text{name}{{}}" for sign, name in zip("\\~^<>|`", _TEXT, strict=True)}
_SIGNS |= {sign: f"${maths}$" for sign, maths in _MATHS.items()}
_SIGNS |= {"…": r"\ldots{}", "–": "--", "µ": r"\textmu{}", "\u2009": r"\,", "’": "'", '"': "''"}
_LATIN = range(0xC0, 0x180)  # letters with accents, which every engine knows
_BARS = 60  # steps that are drawn in a line
_HEIGHT = 8.0  # points
_WIDTH = 110  # letters of a line in small print
_LONG = 30  # letters of a text: its column breaks lines
_SIDE_BY_SIDE = 2  # variants that have room in a table together with their differences


@dataclass(frozen=True)
class Page:
    """How much of a block to write, and whose it is."""

    full: bool
    rows: int | None
    of: str
    title: str


@face("latex")
def render(report: Report, options: Options) -> str:
    """The report as LaTeX to be included."""
    head = "% Made by tracekit. Needs \\usepackage{array,booktabs,xcolor}, and no other package.\n"
    rows = options.rows if options.rows is not None or report.subject.study is None else sys.maxsize
    outlined = outline(report, rows, options.full)  # a table of a study is for a paper, which has all of it
    written_lines = [line for chapter in outlined.chapters for line in _chapter(chapter, options.full)]
    return head + "\n".join([*written_lines, *(f"\n{escape(sentence)}" for sentence in outlined.closing)]) + "\n"


def escape(text: str) -> str:
    """Text that TeX sets as it is, whatever it contains; letters beyond Latin by their numbers, breaks after signs."""
    parts = ("".join(map(_sign, part)) for part in sanitize(text).split("--"))
    return "-{}-".join(parts)  # two hyphens would become a dash


def _sign(character: str) -> str:
    if character in _SIGNS:
        return _SIGNS[character]
    if character.isascii():
        return character
    if ord(character) in _LATIN and unicodedata.decomposition(character):
        return character
    return rf"\texttt{{U+{ord(character):04X}}}"


def _chapter(chapter: Chapter, full: bool) -> Iterator[str]:
    if not chapter.leads:
        yield f"\n\\paragraph{{{escape(chapter.title)}}}"
    for entry in chapter.entries:
        for block in entry.blocks:
            yield ""
            yield from written(block, Page(full, entry.rows, entry.of, chapter.title))


@singledispatch
def written(block: Block, page: Page) -> Iterator[str]:
    """One block as lines of LaTeX."""
    raise TypeError(f"{type(block).__name__}: is not a kind of block")


@written.register
def _(block: Sentences, page: Page) -> Iterator[str]:
    of = rf"\textbf{{{escape(page.of)}}}: " if page.of else ""
    for line in block.lines:
        yield f"{of}{escape(line)}\\par"


@written.register
def _(block: Notes, page: Page) -> Iterator[str]:
    yield r"\begin{itemize}"
    for note in block.notes:
        yield rf"  \item \emph{{{escape(note.kind)}}}: {escape(note_text(note))}"
    yield r"\end{itemize}"


@written.register
def _(block: Series, page: Page) -> Iterator[str]:
    rows = [[escape(line.name), _bars(line), escape(legend(line, marked=False))] for line in block.lines]
    yield from _table(page, ["", "steps", ""], "llp{.4\\linewidth}", rows)


def _bars(line: Line) -> str:
    """A rule for each step, as high as it is long; one that compiles is as high as the highest, and grey."""
    steps = len(line.values)
    steady = [v for v, mark in zip(line.values, line.marks, strict=True) if v is not None and mark != "compiles"]
    top = max(steady, default=0) or 1
    rules = []
    for k in range(min(steps, _BARS)):
        stretch = slice(k * steps // min(steps, _BARS), (k + 1) * steps // min(steps, _BARS))
        known = [value for value in line.values[stretch] if value is not None]
        if "compiles" in line.marks[stretch]:
            rules.append(rf"\textcolor{{gray}}{{\rule{{2pt}}{{{_HEIGHT:.1f}pt}}}}")
        else:
            rules.append(rf"\rule{{2pt}}{{{max([0, *known]) / top * _HEIGHT:.1f}pt}}")
    return r"\,".join(rules)


@written.register
def _(block: Excerpt, page: Page) -> Iterator[str]:
    names = [*block.costs]
    rows = [[*margins(block, number), str(number), line] for number, line in enumerate(block.lines, block.first)]
    head = [*names, "line", block.file]
    shown = [[*map(escape, row[:-1]), rf"\texttt{{{_indented(row[-1])}}}"] for row in rows]
    yield from _table(page, [*map(escape, head)], "r" * (len(names) + 1) + "l", shown)


def _indented(line: str) -> str:
    bare = line.lstrip(" ")
    return "~" * (len(line) - len(bare)) + escape(bare)


@written.register
def _(block: Table, page: Page) -> Iterator[str]:
    table = grid(block, page.rows, page.full)
    yield from _in_pieces(page, table)
    if table.shown < table.of:
        yield f"{table.shown} of {table.of} rows.\\par"


def _in_pieces(page: Page, table: Grid) -> Iterator[str]:
    """One table, or several one below the other where columns have no room: each begins with the names of its rows."""
    kinds = ["r" if figure else _left(row[k] for row in table.rows) for k, figure in enumerate(table.figures)]
    widths = [
        min(max([*map(len, head.split()), *(len(row[k]) for row in table.rows)], default=0), _LONG) + 2
        for k, head in enumerate(table.heads)
    ]
    names = next((k for k, kind in enumerate(kinds) if kind == "r"), len(kinds))
    pieces: list[list[int]] = [[]]
    for k in range(names, len(kinds)):
        if pieces[-1] and sum(widths[:names]) + sum(widths[at] for at in [*pieces[-1], k]) > _WIDTH:
            pieces.append([])
        pieces[-1].append(k)
    for piece in pieces:
        chosen = [*range(names), *piece]
        rows = ([escape(row[k]) for k in chosen] for row in table.rows)
        yield from _table(page, [escape(table.heads[k]) for k in chosen], "".join(kinds[k] for k in chosen), rows)


def _left(column: Iterable[str]) -> str:
    """A column of texts, which breaks lines where they are long."""
    return r">{\raggedright}p{.3\linewidth}" if max(map(len, column), default=0) > _LONG else "l"


@written.register
def _(block: Breakdown, page: Page) -> Iterator[str]:
    together = len(block.variants) <= _SIDE_BY_SIDE
    yield from _parts(block, page, block.variants, block.compared if together else [])
    if not together and block.compared:
        yield from _parts(block, page, [], block.compared)


def _parts(block: Breakdown, page: Page, variants: list[str], compared: list[str]) -> Iterator[str]:
    """A row for each bucket: of these variants what it takes, of those the difference."""
    head = [escape(f"bucket ({block.unit})")]
    for name in variants:
        head += [escape(name), r"\%"]
    for name in compared:
        head += [rf"$\Delta$ {escape(name)}", r"95\,\%"]
    rows = [[*_cells(block, key, variants, compared)] for key in block.keys]
    yield from _table(page, head, "l" + "rr" * len(variants + compared), rows[:-1], rows[-1])


def _cells(block: Breakdown, key: str, variants: list[str], compared: list[str]) -> Iterator[str]:
    part = block.part(key)
    chip = rf"\textcolor[HTML]{{{part.colour.removeprefix('#').upper()}}}{{\rule{{5pt}}{{5pt}}}} " if part else ""
    yield chip + escape(label(block, key))
    for name in variants:
        value = block.cells[key][name]
        yield escape(thousandths(value) if value or key == TOTAL else "·")
        yield escape(share(block, key, name).removesuffix(" %"))
    for name in compared:
        yield escape(thousandths(block.deltas[key][name], signed=True))
        yield escape(interval(block, key, name)) + (r" $\sim$" if is_noise(block, key, name) else "")


def _table(
    page: Page, head: list[str], kinds: str, rows: Iterable[list[str]], total: list[str] | None = None
) -> Iterator[str]:
    """One table; the title of its chapter is its caption."""
    caption = f"{page.title}: {page.of}" if page.of else page.title
    yield r"\begin{table}[htbp]\centering\small"
    yield rf"\caption{{{escape(caption)}}}"
    yield rf"\begin{{tabular}}{{@{{}}{kinds}@{{}}}}"
    yield r"\toprule"
    yield " & ".join(head) + r" \tabularnewline"
    yield r"\midrule"
    for row in rows:
        yield " & ".join(row) + r" \tabularnewline"
    if total is not None:
        yield r"\midrule"
        yield " & ".join(total) + r" \tabularnewline"
    yield r"\bottomrule"
    yield r"\end{tabular}"
    yield r"\end{table}"
