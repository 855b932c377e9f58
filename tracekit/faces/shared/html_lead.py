"""The first screen of the page: how long a step takes in each variant, what to do next, findings, and contents."""

from collections.abc import Iterable, Iterator

from tracekit.faces.shared.html_drawings import escape, pace_bar, prose
from tracekit.report.blocks import Block, Card, Cards, Headline, Notes, Table
from tracekit.report.outline import Chapter
from tracekit.units import duration


def contents(chapters: Iterable[Chapter]) -> Iterator[str]:
    """Links to the chapters, each with the number of its rows, findings or notes."""
    yield '<nav aria-label="contents">'
    for chapter in chapters:
        if not chapter.leads:
            blocks = [block for entry in chapter.entries for block in entry.blocks]
            cards = [block for block in blocks if isinstance(block, Cards)]  # smaller findings are a table below them
            size = sum(map(_size, cards or blocks))
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
    yield f"<span>{prose('; '.join(finding_card.said_costs(with_names)))}</span></header>"
    for kind, text in [
        ("place", finding_card.place),
        ("", finding_card.why),
        ("do", finding_card.do),
        *(("quiet", p) for p in finding_card.also),
    ]:
        if text:
            yield f'<p class="{kind}">{prose(text)}</p>'
    yield "</div>"
    yield from source
    yield "</li>"
