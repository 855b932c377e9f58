"""The report as one page: nothing is fetched, no script runs, and it reads on a phone, in the dark and on paper."""

import base64
import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import singledispatch
from importlib.resources import files

import pyarrow as pa

from tracekit.faces import Options, face
from tracekit.faces.shared.cells import cell, heading, is_number, meaning, readable, role, texts
from tracekit.faces.shared.html_drawings import escape, stacked_bar, step_bars
from tracekit.faces.shared.margins import margins
from tracekit.faces.shared.sparks import legend
from tracekit.faces.shared.wording import interval, is_noise, label, note_text, share
from tracekit.names import short
from tracekit.report import Report
from tracekit.report.blocks import Block, Excerpt, Notes, Sentences, Series, Table
from tracekit.report.breakdown import TOTAL, Breakdown
from tracekit.report.outline import Chapter, outline
from tracekit.units import thousandths

_FOLDED = 200  # rows that a click shows; the others are in the exports
_NAME = 22  # letters of a variant in the head of a column
_CELL = 120  # letters of a text in a table


@dataclass(frozen=True)
class Page:
    """How much of a block to show, and whose it is."""

    full: bool
    rows: int | None
    of: str = ""  # whose it is, where nothing has said so yet


@face("html")
def render(report: Report, options: Options | None = None) -> str:
    """The report as a page."""
    options = options or Options()
    style = files("tracekit.faces.shared").joinpath("page.css").read_text(encoding="utf-8")
    return "".join(f"{line}\n" for line in _document(report, options, style))


def _document(report: Report, options: Options, style: str) -> Iterator[str]:
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    outlined = outline(report, options.rows, options.full, fold=True)
    title = escape(report.title)
    yield '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">'
    yield (
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        f"style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'\">"
    )
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield '<meta name="referrer" content="no-referrer">'
    yield f"<title>{title}</title>\n<style>{style}</style>\n</head>\n<body>\n<h1>{title}</h1>"
    shown = [chapter for chapter in outlined.chapters if not chapter.leads]
    links = " ".join(f'<a href="#{escape(chapter.id)}">{escape(chapter.title)}</a>' for chapter in shown)
    for chapter in outlined.chapters:
        yield from _chapter(chapter, options.full)
        if chapter.leads:
            yield f"<nav>{links}</nav>"
    yield "<footer>"
    for sentence in outlined.closing:
        yield f"<p>{escape(sentence)}</p>"
    yield "<p>Made by tracekit. Nothing on this page is loaded from elsewhere.</p></footer>\n</body>\n</html>"


def _chapter(chapter: Chapter, full: bool) -> Iterator[str]:
    yield f'<section id="{escape(chapter.id)}">'
    if not chapter.leads:
        yield f"<h2>{escape(chapter.title)}</h2>"
    for entry in chapter.entries:
        with_words = isinstance(entry.blocks[0], Sentences)
        if entry.of and not with_words:
            yield f"<h3>{escape(entry.of)}</h3>"
        for index, block in enumerate(entry.blocks):
            yield from drawn(block, Page(full, entry.rows, entry.of if with_words and not index else ""))
    yield "</section>"


@singledispatch
def drawn(block: Block, page: Page) -> Iterator[str]:
    """One block as HTML."""
    raise TypeError(f"{type(block).__name__}: is not a kind of block")


@drawn.register
def _(block: Sentences, page: Page) -> Iterator[str]:
    of = f'<span class="of">{escape(page.of)}</span>: ' if page.of else ""
    for line in block.lines:
        yield f'<p class="{block.tone}">{of}{escape(line)}</p>'


@drawn.register
def _(block: Notes, page: Page) -> Iterator[str]:
    yield "<ul>"
    for note in block.notes:
        yield f'<li><span class="kind">{escape(note.kind)}</span>: {escape(note_text(note))}</li>'
    yield "</ul>"


@drawn.register
def _(block: Excerpt, page: Page) -> Iterator[str]:
    source = _source(block)
    yield from _folded(f"All of {block.file}", source) if block.detail else source


def _source(block: Excerpt) -> Iterator[str]:
    """Lines of source, with what each costs in the margin."""
    names = [*block.costs]
    yield '<div class="scroll"><table class="source">'
    yield _head([(name, True, "") for name in names] + [("", True, ""), (block.file, False, "")])
    for number, line in enumerate(block.lines, block.first):
        cells = "".join(f'<td class="number">{escape(cost)}</td>' for cost in margins(block, number))
        yield f'<tr>{cells}<td class="number quiet">{number}</td><td><pre>{escape(line)}</pre></td></tr>'
    yield "</table></div>"


@drawn.register
def _(block: Table, page: Page) -> Iterator[str]:
    if block.layout == "records":
        records = _records(block, page)
        yield from _folded(f"{len(block.rows.schema)} columns", records) if block.detail else records
        return
    opened = 0 if block.detail and not page.full else page.rows
    whole = block.rows.num_rows if page.full else min(block.rows.num_rows, max(_FOLDED, opened or 0))
    first = block.rows.slice(0, opened)
    if len(first):
        yield from _rows(first, page.full)
    if len(first) < whole:
        rest = block.rows.slice(len(first), whole - len(first))
        yield from _folded(
            f"{len(rest):,} {'more ' if len(first) else ''}row{'s' * (len(rest) > 1)}", _rows(rest, page.full)
        )
    if whole < block.rows.num_rows:
        yield f'<p class="more">{whole:,} of {block.rows.num_rows:,} rows; exports have them all.</p>'


def _folded(title: str, inside: Iterable[str]) -> Iterator[str]:
    yield f"<details><summary>{escape(title)}</summary>"
    yield from inside
    yield "</details>"


def _rows(rows: pa.Table, full: bool) -> Iterator[str]:
    fields = readable(rows, full)
    columns = [_column(rows[field.name].to_pylist(), field) for field in fields]
    yield '<div class="scroll"><table>'
    yield _head([(heading(field), is_number(field), meaning(field)) for field in fields])
    for row in zip(*columns, strict=True):
        yield f"<tr>{''.join(row)}</tr>"
    yield "</table></div>"


def _column(values: list[object], field: pa.Field) -> list[str]:
    """The cells of a column; a name that is shortened tells the whole of it where the pointer rests."""
    shown = texts(values, field, _CELL)
    if is_number(field):
        return [f'<td class="number">{escape(text)}</td>' for text in shown]
    if role(field) == "kernel":
        whole = [cell(value, field, 4 * _CELL) for value in values]
        return [
            f'<td class="kernel" title="{escape(name)}">{escape(text)}</td>'
            for name, text in zip(whole, shown, strict=True)
        ]
    return [f'<td class="text">{escape(text)}</td>' for text in shown]


def _records(block: Table, page: Page) -> Iterator[str]:
    first, *fields = readable(block.rows, page.full or block.detail)
    yield '<div class="scroll"><table>'
    yield _head([("", False, ""), *((name, True, "") for name in texts(block.rows[first.name].to_pylist(), first))])
    for field in fields:
        cells = "".join(
            f'<td class="number">{escape(text)}</td>'
            for text in texts(block.rows[field.name].to_pylist(), field, _CELL)
        )
        yield f'<tr><td title="{escape(meaning(field))}">{escape(heading(field))}</td>{cells}</tr>'
    yield "</table></div>"


def _head(columns: Iterable[tuple[str, bool, str]]) -> str:
    cells = [
        f'<th class="{"number" if right else "text"}" title="{escape(hint)}">{escape(text)}</th>'
        for text, right, hint in columns
    ]
    return f"<tr>{''.join(cells)}</tr>"


@drawn.register
def _(block: Breakdown, page: Page) -> Iterator[str]:
    yield "<figure>"
    longest = max(*block.cells[TOTAL].values(), 1)
    for name in block.variants:
        total = f"{thousandths(block.cells[TOTAL][name])} {block.unit}"
        bar = stacked_bar(block, name, longest)
        yield f'<div class="bar"><span>{escape(name)}</span>{bar}<span>{total}</span></div>'
    for name, reason in block.unanswered.items():
        yield f'<p class="quiet">{escape(name)}: cannot be answered: {escape(reason)}</p>'
    yield "</figure>"
    yield '<div class="scroll"><table>'
    called = dict(zip(block.variants, short(block.variants, _NAME), strict=True))
    head = [(f"bucket ({block.unit})", False, "")]
    for name in block.variants:
        head += [(called[name], True, name), ("", True, "part of the step")]
    for name in block.compared:
        against = f"{name} against {block.baselines[name]}"
        head += [(f"Δ {called[name]}", True, against), ("95 %", True, "interval of the difference")]
    yield _head(head)
    for key in block.keys:
        yield f"<tr{' class=total' if key == TOTAL else ''}>{''.join(_cells(block, key))}</tr>"
    yield "</table></div>"


def _cells(block: Breakdown, key: str) -> Iterator[str]:
    part = block.part(key)
    if part is None:
        yield f"<td>{escape(label(block, key))}</td>"
    else:
        chip = f'<svg width="10" height="10"><rect width="10" height="10" fill="{part.colour}"/></svg>'
        yield f'<td title="{escape(part.meaning)}">{chip}{escape(part.label)}</td>'
    for name in block.variants:
        value = block.cells[key][name]
        yield f'<td class="number">{thousandths(value) if value or key == TOTAL else "·"}</td>'
        yield f'<td class="number quiet">{share(block, key, name)}</td>'
    for name in block.compared:
        noise = is_noise(block, key, name)
        mark = ' class="number noise"' if noise else ' class="number"'
        yield f"<td{mark}>{thousandths(block.deltas[key][name], signed=True)}</td>"
        yield f'<td class="number quiet">{interval(block, key, name)}{" ~ noise" if noise else ""}</td>'


@drawn.register
def _(block: Series, page: Page) -> Iterator[str]:
    yield "<figure>"
    for line in block.lines:
        text = f"<small>{escape(legend(line, marked=False))}</small>"
        yield f'<div class="series"><span>{escape(line.name)}</span>{step_bars(line)}{text}</div>'
    yield "</figure>"
