"""The report as Markdown, for a comment on a pull request: the verdict and the parts of a step, with details folded."""

import html
import re
from collections.abc import Iterable, Iterator
from functools import singledispatch

from msgspec import Struct

from tracekit.base.names import sanitize
from tracekit.faces import DEFAULTS, Options, face
from tracekit.faces.shared.cells import grid
from tracekit.faces.shared.wording import (
    certainty,
    change,
    glyphs,
    label,
    legend,
    margins,
    note_text,
    rests_on,
    share,
    taken,
)
from tracekit.report import Report
from tracekit.report.blocks import Block, Cards, Excerpt, Headline, Notes, Sentences, Series, Table, is_detail
from tracekit.report.breakdown import TOTAL, Breakdown
from tracekit.report.outline import outline

_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+!|~])")
# GitHub turns addresses into links, @name into notifications and #12 into references, even if they are escaped: only an
# invisible element inside them prevents that.
_LIVE = re.compile(r"(?<=@)|(?<=#)(?=\d)|(?<=:)(?=//)|(?<=www)(?=\.)", re.IGNORECASE)
_TICKS = re.compile("`+")
_STEPS = 80  # cells of a line of steps
_COMMENT = 60_000  # characters: GitHub's comments take 65,536


class Page(Struct, frozen=True):
    """How much of a block to write, and what it is about."""

    full: bool
    rows: int | None
    subject: str


@face("markdown")
def render(report: Report, options: Options = DEFAULTS) -> str:
    """The report as Markdown."""
    # What a reviewer needs is open; all else is folded, or left out if a comment has no room for it.
    lines = [*_written(report, options, fold=True)]
    if not options.full and options.rows is None and sum(map(len, lines)) >= _COMMENT:
        lines = [*_written(report, options, fold=False)]
    return "\n".join(lines) + "\n"


def draw_blocks(blocks: Iterable[Block], options: Options = DEFAULTS) -> str:
    """Some blocks by themselves, as the report writes them."""
    paragraphs = ("\n".join(written(block, Page(options.full, options.rows, ""))) for block in blocks)
    return "\n\n".join(paragraphs) + "\n"


def escape(text: str) -> str:
    """Text that Markdown and HTML show as it is."""
    return _LIVE.sub("<span></span>", _SPECIAL.sub(r"\\\1", html.escape(sanitize(text), quote=False)))


def _written(report: Report, options: Options, fold: bool) -> Iterator[str]:
    yield f"# {escape(report.title)}"
    outlined = outline(report, options.rows, options.full, fold)
    for chapter in outlined.chapters:
        # Sentences and the parts of a step stay open where they come first; all else is folded.
        blocks = [block for entry in chapter.entries for block in entry.blocks]
        short = all(isinstance(block, Sentences | Breakdown) or is_detail(block) for block in blocks)
        is_open = chapter.leads or (chapter.entries[0].section.stage == "lead" and short)
        if not is_open:
            yield from ("", *_folded(chapter.title))
        elif not chapter.leads:
            yield from ("", f"## {escape(chapter.title)}")
        for entry in chapter.entries:
            if entry.subject and not isinstance(entry.blocks[0], Sentences):
                yield from ("", f"**{escape(entry.subject)}**")
            for index, block in enumerate(entry.blocks):
                yield ""
                yield from written(block, Page(options.full, entry.rows, entry.subject if index == 0 else ""))
        if not is_open:
            yield from ("", "</details>")
    for sentence in outlined.closing:
        yield from ("", f"*{escape(sentence)}*")


def _folded(title: str) -> Iterator[str]:
    yield "<details>"
    yield f"<summary>{_LIVE.sub('<span></span>', html.escape(sanitize(title)))}</summary>"


@singledispatch
def written(block: Block, page: Page) -> Iterator[str]:
    """One block as lines of Markdown."""
    raise TypeError(f"{type(block).__name__}: is not a kind of block")


@written.register(Sentences)
def _(block: Sentences, page: Page) -> Iterator[str]:
    for line in block.lines:
        text = f"**{escape(line)}**" if block.tone == "lead" else escape(line)
        yield f"**{escape(page.subject)}**: {text}  " if page.subject else f"{text}  "


@written.register(Headline)
def _(block: Headline, page: Page) -> Iterator[str]:
    bold = [*filter(None, (block.first, block.last))]
    yield from (f"**{escape(line)}**  " for line in bold or block.lines)
    yield from (f"{escape(line)}  " for line in (block.lines if bold else ()))


@written.register(Cards)
def _(block: Cards, page: Page) -> Iterator[str]:
    for number, card in enumerate(block.cards, 1):
        cost = "; ".join(card.cost_phrases(block.several))
        yield f"{number}. **{escape(card.headline)}**" + (f" – {escape(cost)}" if cost else "") + "  "
        for text in (card.place, card.why):
            if text:
                yield f"   {escape(text)}  "
        if card.do:
            yield f"   **{escape(card.do)}**"
        for part in card.also:
            yield f"   - {escape(part)}"


@written.register(Notes)
def _(block: Notes, page: Page) -> Iterator[str]:
    for note in block.notes:
        yield f"- {escape(f'{note.kind}: {note_text(note)}')}"


@written.register(Series)
def _(block: Series, page: Page) -> Iterator[str]:
    lines = [[line.name, glyphs(line, _STEPS), legend(line)] for line in block.lines]
    yield from _table(["", "steps", ""], [False, False, False], lines)


@written.register(Excerpt)
def _(block: Excerpt, page: Page) -> Iterator[str]:
    if block.detail:
        last = block.first + len(block.lines) - 1
        yield from (*_folded(f"{block.file}, lines {block.first} to {last}"), "")
    rows = [[*map(sanitize, block.costs), ""]]
    rows += [[*margins(block, number), str(number)] for number in range(block.first, block.first + len(block.lines))]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join((*(text.rjust(width) for text, width in zip(row, widths, strict=True)), sanitize(line))).rstrip()
        for row, line in zip(rows, (block.file, *block.lines), strict=True)
    ]
    fence = "`" * (1 + max(map(len, _TICKS.findall("\n".join(["``", *lines])))))
    yield from (f"{fence}python", *lines, fence)
    if block.detail:
        yield from ("", "</details>")


@written.register(Table)
def _(block: Table, page: Page) -> Iterator[str]:
    table = grid(block, page.rows, page.full)
    yield from _table(table.heads, table.figures, table.rows)
    if table.shown_rows < table.total_rows:
        yield from ("", f"{table.shown_rows} of {table.total_rows} rows.")


@written.register(Breakdown)
def _(block: Breakdown, page: Page) -> Iterator[str]:
    names, compared = block.variants, block.compared
    head = ["bucket", *(f"{name} {block.unit}" for name in names), *(f"Δ {name} {block.unit}" for name in compared)]
    head += [f"{rests_on(block, name)}: {name}" for name in compared]
    lines = []
    for key in block.keys:
        line = [label(block, key)]
        for name in names:
            part = share(block, key, name) if block.cells[key][name] != block.cells[TOTAL][name] else ""
            line.append(taken(block, key, name) + (f" ({part})" if part else ""))
        line += [change(block, key, name) for name in compared]
        lines.append(line + [certainty(block, key, name) for name in compared])
    yield from _table(head, [False, *([True] * (len(head) - 1))], lines)


def _table(head: list[str], numeric: list[bool], lines: Iterable[list[str]]) -> Iterator[str]:
    yield "| " + " | ".join(escape(title) for title in head) + " |"
    yield "|" + "|".join("---:" if right else "---" for right in numeric) + "|"
    for line in lines:
        yield "| " + " | ".join(escape(text) for text in line) + " |"
