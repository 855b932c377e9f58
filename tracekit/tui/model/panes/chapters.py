"""The chapters of the report that no other pane shows, block by block; a new question appears automatically."""

from collections.abc import Collection
from functools import partial

from msgspec.structs import replace

from tracekit.base.names import sanitize
from tracekit.tui.model.content import Content, Pane, Piece, of_all_steps, pieces_of, prose
from tracekit.tui.model.on_timeline import leading_on
from tracekit.tui.model.opened import OpenReport
from tracekit.tui.model.selection import Selection
from tracekit.tui.model.sheet import Sheet

_HELP = "The answer to one question of the report, for each variant; – marks what the trace does not show."
_CLOSING, _NOTES = "about", "notes"


def chapter_panes(opened: OpenReport, covered_chapters: Collection[str]) -> list[Pane]:
    """A pane for each chapter that no other pane shows, and one for remarks about all of them."""
    chapters = [chapter for chapter in opened.outline.chapters if chapter.id not in {*covered_chapters, _NOTES}]
    panes = [Pane(chapter.id, sanitize(chapter.title), _HELP, partial(_answer, chapter.id)) for chapter in chapters]
    about = Pane(
        _CLOSING, "What to know", "What the figures are based on, what was inferred, and what was left out.", _about
    )
    return [*panes, about]


def _answer(chapter_id: str, opened: OpenReport, selection: Selection) -> Content:
    """The blocks of a chapter; in their tables, Enter leads to what a row is about."""
    chapters = opened.narrowed(selection).outline.chapters
    chapter = next((chapter for chapter in chapters if chapter.id == chapter_id), None)
    if chapter is None:
        return Content((prose("The selection contains none of it."),))
    pieces: list[Piece] = [*of_all_steps(selection)]
    variants = tuple(opened.variants)
    for entry in chapter.entries:
        variant = entry.subject if entry.subject in variants else ""
        for index, block in enumerate(entry.blocks):
            for piece in pieces_of(block, sanitize(entry.subject) if index == 0 else ""):
                if isinstance(piece, Sheet):
                    sheet = replace(piece, variants=variants, variant=variant)
                    pieces.append(leading_on(sheet, selection))
                else:
                    pieces.append(piece)
    return Content(tuple(pieces))


def _about(opened: OpenReport, selection: Selection) -> Content:
    pieces: list[Piece] = []
    for chapter in opened.outline.chapters:
        for entry in chapter.entries:
            blocks = [block for block in entry.blocks if getattr(block, "tone", "") == "quiet" or block.kind == "notes"]
            pieces += [piece for block in blocks for piece in pieces_of(block)]
    if opened.outline.closing:
        pieces.append(prose(*opened.outline.closing, tone="quiet"))
    return Content(tuple(pieces) or (prose("Nothing was inferred, and nothing left out."),))
