"""The panes, in order. Each is a query of what was opened and what is selected; a new one is an entry here.

Chapters of the report that none of these panes shows become panes themselves, so a new question appears automatically.
"""

from functools import partial

from msgspec.structs import replace

from tracekit.base.names import sanitize
from tracekit.tui.model.content import Content, Pane, Piece, of_all_steps, pieces_of, prose
from tracekit.tui.model.opened import OpenReport, has_gpu
from tracekit.tui.model.panes import owners
from tracekit.tui.model.panes.compiles import COMPILES
from tracekit.tui.model.panes.instances import EVENT, INSTANCES
from tracekit.tui.model.panes.names import KERNELS, OPERATORS
from tracekit.tui.model.panes.overview import FINDING, OVERVIEW
from tracekit.tui.model.panes.timeline import TIMELINE, leading_on
from tracekit.tui.model.selection import Selection
from tracekit.tui.model.sheet import Sheet

FIXED = (OVERVIEW, KERNELS, OPERATORS, *owners.PANES, TIMELINE, COMPILES)
PASSED_THROUGH = (FINDING, INSTANCES, EVENT)  # only Enter leads to these
_OF_A_CHAPTER = "The answer to one question of the report, for each variant; – marks what the trace does not show."


def all_panes(opened: OpenReport) -> list[Pane]:
    """All panes; those with nothing to show are not listed, and chapters are added once every question is answered."""
    panes = [pane if pane.applies(opened) else replace(pane, is_listed=False) for pane in FIXED]
    if opened.is_whole:
        elsewhere = {"notes"}.union(*(pane.chapters for pane in FIXED))
        panes += [
            Pane(chapter.id, sanitize(chapter.title), _OF_A_CHAPTER, partial(chapter_content, chapter.id))
            for chapter in opened.outline.chapters
            if chapter.id not in elsewhere
        ]
        help_text = "What the figures are based on, what was inferred, and what was left out."
        panes.append(Pane("about", "What to know", help_text, remarks))
    return [*panes, *PASSED_THROUGH]


def chapter_content(chapter_id: str, opened: OpenReport, selection: Selection) -> Content:
    """The blocks of a chapter; in their tables, Enter leads to what a row is about."""
    chapters = opened.narrowed(selection).outline.chapters
    chapter = next((chapter for chapter in chapters if chapter.id == chapter_id), None)
    if chapter is None:
        return Content((prose("The selection contains none of it."),))
    pieces: list[Piece] = [*of_all_steps(selection)]
    variants, on_gpu = tuple(opened.variants), has_gpu(opened.report.profiles)
    for entry in chapter.entries:
        variant = entry.subject if entry.subject in variants else ""
        for index, block in enumerate(entry.blocks):
            for piece in pieces_of(block, sanitize(entry.subject) if index == 0 else ""):
                if isinstance(piece, Sheet):
                    pieces.append(leading_on(replace(piece, variants=variants, variant=variant), selection, on_gpu))
                else:
                    pieces.append(piece)
    return Content(tuple(pieces))


def remarks(opened: OpenReport, selection: Selection) -> Content:
    """Remarks of all chapters."""
    entries = [entry for chapter in opened.outline.chapters for entry in chapter.entries]
    blocks = [block for entry in entries for block in entry.blocks]
    quiet = [block for block in blocks if getattr(block, "tone", "") == "quiet" or block.kind == "notes"]
    pieces = [piece for block in quiet for piece in pieces_of(block)]
    if opened.outline.closing:
        pieces.append(prose(*opened.outline.closing, tone="quiet"))
    return Content(tuple(pieces) or (prose("Nothing was inferred, and nothing left out."),))
