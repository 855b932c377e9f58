"""The report as one page that fetches nothing and runs only its own script; for phones, dark mode and paper, too."""

import base64
import hashlib
import re
from collections.abc import Iterable, Iterator
from functools import singledispatch
from importlib.resources import files
from math import inf
from textwrap import dedent

from msgspec import Struct
from msgspec.structs import replace

from tracekit.base.pages import Page as ExplainedPage
from tracekit.base.units import duration
from tracekit.faces import DEFAULTS, Options, face
from tracekit.faces.shared.cells import nearby
from tracekit.faces.shared.html_figures import breakdown, escape, folded, head, pace_bar, prose, step_bars, table
from tracekit.faces.shared.timeline_svg import typical_step_svg
from tracekit.faces.shared.wording import legend, margins, note_text
from tracekit.findings.page import EXAMPLE, READ_MORE
from tracekit.report import Report
from tracekit.report.blocks import Block, Card, Cards, Excerpt, Headline, Notes, Sentences, Series, Table
from tracekit.report.breakdown import Breakdown
from tracekit.report.explained import pages
from tracekit.report.outline import Chapter, outline

_CODE = re.compile(r"`([^`]*)`")
_TIMELINE = 2_000_000  # events of a variant: a picture of one step does not justify holding more in memory
_READING = (
    ("Wall time", "is what a step takes: what the GPU was doing and, while it was idle, what kept it idle."),
    ("Host time", "is what the host threads that drive the training were doing meanwhile."),
    ("Buckets", "add up to the step, exactly; rest the pointer on one to read what it means."),
    ("Δ", "is the difference from the baseline; the waterfall shows it bucket by bucket."),
    (
        "one trace, 5 pairs",
        "are what differences rest on: another trace may differ by more, and pairs of traces give an interval. ~ noise "
        "marks what their scatter, or that of the steps, alone explains; ≠ a difference that the pairs do not show.",
    ),
    ("Unprofiled times", "are the ones to quote; those under the profiler explain them."),
    ("inferred", "marks what is not recorded directly; what cannot be answered is stated, and never shown as zero."),
)


def contents(chapters: Iterable[Chapter]) -> Iterator[str]:
    """Links to the chapters, each with the number of its rows, findings or notes."""
    yield '<nav aria-label="contents">'
    for chapter in chapters:
        if not chapter.leads:
            blocks = [block for entry in chapter.entries for block in entry.blocks]
            cards = [block for block in blocks if isinstance(block, Cards)]  # smaller findings are a table below them
            size = 0
            for block in cards or blocks:
                if isinstance(block, Table) and block.layout != "records":
                    size += int(block.rows.num_rows)
                elif isinstance(block, Cards | Notes):
                    size += len(block.cards if isinstance(block, Cards) else block.notes)
            rows = f" <small>{size:,}</small>" if size else ""
            yield f'<a href="#{escape(chapter.id)}">{escape(chapter.title)}{rows}</a>'
    yield "</nav>"


def _size(block: Block) -> int:
    if isinstance(block, Table):
        return 0 if block.layout == "records" else int(block.rows.num_rows)
    return len(block.cards) if isinstance(block, Cards) else len(block.notes) if isinstance(block, Notes) else 0


def at_a_glance(block: Headline) -> Iterator[str]:
    """From before to after, a bar for each variant on one scale, and the one thing to do next."""
    if block.change:
        times, _, verdict = block.change.partition(": ")
        yield f'<p class="change"><strong>{prose(times)}</strong> {prose(verdict)}</p>'
    if len(block.paces) > 1:
        longest = max(pace.step_ns for pace in block.paces)
        yield '<figure class="paces">'
        for pace in block.paces:
            takes = prose(duration(pace.step_ns, like=longest))
            yield (
                f'<div class="bar"><span>{escape(pace.name)}</span>{pace_bar(pace.name, pace.step_ns / longest)}'
                f"<span><strong>{takes}</strong> {prose(pace.against)}</span></div>"
            )
        yield "</figure>"
    if block.next_do:
        yield f'<p class="next"><span>Next, in {escape(block.next_of)}</span>{prose(block.next_do)}</p>'


def card(finding_card: Card, with_names: bool, source: Iterable[str]) -> Iterator[str]:
    """A finding; the lines of source that it names stand beside it."""
    yield f"<li><div><header><strong>{prose(finding_card.headline)}</strong>"
    yield f"<span>{prose('; '.join(finding_card.cost_phrases(with_names)))}</span></header>"
    for kind, text in [
        ("place", finding_card.place),
        ("", finding_card.why),
        ("do", finding_card.do),
        *(("quiet", p) for p in finding_card.also),
    ]:
        if text:
            yield f'<p class="{kind}">{prose(text)}</p>'
    if (page := pages("finding").get(finding_card.id)) is not None:
        yield from folded("What this finding means", explained(page))
    yield "</div>"
    yield from source
    yield "</li>"


def explained(page: ExplainedPage) -> Iterator[str]:
    """What a finding means: without an example, since the card is one, and without addresses, which lead elsewhere."""
    yield '<div class="explained">'
    for part in page.parts:
        if part.heading.startswith((EXAMPLE, READ_MORE)):
            continue
        texts = [_CODE.sub(r"<code>\1</code>", prose(text)) for text in part.texts]
        yield f"<h4>{escape(part.heading)}</h4>"
        if part.layout == "points":
            yield f"<ul>{''.join(f'<li>{text}</li>' for text in texts)}</ul>"
        else:
            yield from (f"<p>{text}</p>" for text in texts)
    yield "</div>"


class Page(Struct, frozen=True):
    """How much of a block to show, and what it is about."""

    full: bool
    rows: int | None
    subject: str = ""  # what the block is about, unless that was already shown
    beside: tuple[tuple[str, Excerpt], ...] = ()  # the lines that findings name, of each variant


@face("html", on_terminal=False)
def render(report: Report, options: Options = DEFAULTS) -> str:
    """The report as a page."""
    (style, style_digest), (script, script_digest) = _part("page.css"), _part("tables.js", "timeline.js")
    outlined = outline(report, options.rows, options.full, fold=True)
    title = escape(report.title)
    lines = [
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        f"style-src {style_digest}; script-src {script_digest}; base-uri 'none'; form-action 'none'\">",
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="referrer" content="no-referrer">',
        f"<title>{title}</title>\n<style>{style}</style>\n</head>\n<body>",
        *contents(outlined.chapters),
        f"<main>\n<h1>{title}</h1>",
    ]
    has_timeline = False
    for chapter in outlined.chapters:
        lines += _chapter(chapter, options.full)
        if not has_timeline and isinstance(chapter.entries[0].blocks[0], Breakdown):
            has_timeline = True
            lines += _timeline(report)
    lines.append('<footer>\n<details class="reading"><summary>How to read this page</summary><dl>')
    lines += (f"<dt>{escape(term)}</dt><dd>{prose(meaning)}</dd>" for term, meaning in _READING)
    lines.append("</dl></details>")
    lines += (f"<p>{prose(sentence)}</p>" for sentence in outlined.closing)
    lines.append("<p>Made by tracekit. Nothing on this page is loaded from elsewhere.</p></footer></main>")
    lines.append(f"<script>{script}</script>\n</body>\n</html>")
    return "".join(f"{line}\n" for line in lines)


def _part(*names: str) -> tuple[str, str]:
    """Some of the page's own files as one text, and the digest by which the page allows it."""
    text = "".join(files("tracekit.faces.shared").joinpath(name).read_text(encoding="utf-8") for name in names)
    return text, f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _timeline(report: Report) -> Iterator[str]:
    """A step of each variant, of middle length, drawn to one scale."""
    short_enough = [profile for profile in report.profiles if len(profile.trace.ts_ns) <= _TIMELINE]
    picture = typical_step_svg(short_enough)
    if picture:
        yield '<section id="timeline"><h2>One step of each variant</h2>'
        yield f'<div class="scroll"><div class="zoomed">{picture}</div></div>'
        for profile in report.profiles:
            if profile not in short_enough:
                yield f'<p class="quiet">{escape(profile.name)}: too many events to draw here; the TUI shows them.</p>'
        yield "</section>"


def _chapter(chapter: Chapter, full: bool) -> Iterator[str]:
    yield f'<section id="{escape(chapter.id)}">'
    if not chapter.leads:
        yield f"<h2>{escape(chapter.title)}</h2>"
    blocks = [(entry.section.variant, block) for entry in chapter.entries for block in entry.blocks]
    cards = [card for _, block in blocks if isinstance(block, Cards) for card in block.cards]
    # The excerpts with a line that a finding names stand beside its card, and are not drawn by themselves.
    beside = tuple(
        (variant, block)
        for variant, block in blocks
        if isinstance(block, Excerpt) and variant is not None
        if any(variant in dict(card.costs) and block.distance(card.line) < inf for card in cards)
    )
    for entry in chapter.entries:
        with_words = isinstance(entry.blocks[0], Sentences)
        drawn_blocks = [block for block in entry.blocks if not any(block is excerpt for _, excerpt in beside)]
        if entry.subject and drawn_blocks and not with_words:
            yield f"<h3>{escape(entry.subject)}</h3>"
        for index, block in enumerate(drawn_blocks):
            yield from drawn(block, Page(full, entry.rows, entry.subject if with_words and not index else "", beside))
    yield "</section>"


@singledispatch
def drawn(block: Block, page: Page) -> Iterator[str]:
    """One block as HTML."""
    raise TypeError(f"{type(block).__name__}: is not a kind of block")


@drawn.register(Sentences)
def _(block: Sentences, page: Page) -> Iterator[str]:
    prefix = f'<span class="of">{escape(page.subject)}</span>: ' if page.subject else ""
    for line in block.lines:
        yield f'<p class="{block.tone}">{prefix}{prose(line)}</p>'


@drawn.register(Headline)
def _(block: Headline, page: Page) -> Iterator[str]:
    yield from at_a_glance(block)
    for line in block.lines:
        yield f'<p class="{"said" if block.paces else "lead"}">{prose(line)}</p>'


@drawn.register(Cards)
def _(block: Cards, page: Page) -> Iterator[str]:
    yield '<ol class="cards">'
    for finding_card in block.cards:
        names = [name for name, _ in finding_card.costs]
        # Excerpts of lines that are close to each other overlap: in the card's own, its line is in the middle.
        beside = [
            excerpt
            for variant, excerpt in page.beside
            if variant in names and excerpt.distance(finding_card.line) < inf
        ]
        excerpt = min(beside, key=lambda excerpt: excerpt.distance(finding_card.line), default=None)
        if excerpt is not None:  # without the indentation that all its lines share: beside a card there is little room
            excerpt = replace(excerpt, lines=tuple(dedent("\n".join(excerpt.lines)).split("\n")))
        yield from card(finding_card, block.several, _source(excerpt) if excerpt is not None else ())
    yield "</ol>"


@drawn.register(Notes)
def _(block: Notes, page: Page) -> Iterator[str]:
    yield "<ul>"
    for note in block.notes:
        yield f'<li><span class="kind">{escape(note.kind)}</span>: {prose(note_text(note))}</li>'
    yield "</ul>"


@drawn.register(Excerpt)
def _(block: Excerpt, page: Page) -> Iterator[str]:
    source = _source(block)
    yield from folded(f"All of {block.file}", source) if block.is_whole_file else source


def _source(block: Excerpt) -> Iterator[str]:
    """Lines of source, with what each costs in the margin."""
    names = [*block.costs]
    yield '<div class="scroll"><table class="source">'
    yield head([(name, True, "") for name in names] + [("", True, ""), (nearby(block.file), False, block.file)])
    for number, line in enumerate(block.lines, block.first):
        cells = "".join(f'<td class="number">{prose(cost)}</td>' for cost in margins(block, number))
        yield f'<tr>{cells}<td class="number quiet">{number}</td><td><pre>{escape(line)}</pre></td></tr>'
    yield "</table></div>"


@drawn.register(Table)
def _(block: Table, page: Page) -> Iterator[str]:
    yield from table(block, page.rows, page.full)


@drawn.register(Breakdown)
def _(block: Breakdown, page: Page) -> Iterator[str]:
    yield from breakdown(block)


@drawn.register(Series)
def _(block: Series, page: Page) -> Iterator[str]:
    yield "<figure>"
    for line in block.lines:
        text = f"<small>{prose(legend(line, marked=False))}</small>"
        yield f'<div class="series"><span>{escape(line.name)}</span>{step_bars(line)}{text}</div>'
    yield "</figure>"
