"""The panes, in order. Each is a query of what was opened and what is selected; a new one is an entry here.

Chapters of the report that none of these panes shows become panes themselves, so a new question appears automatically.
"""

from msgspec.structs import replace

from tracekit.tui.model.content import Pane
from tracekit.tui.model.opened import OpenReport
from tracekit.tui.model.panes.chapters import chapter_panes
from tracekit.tui.model.panes.compiles import COMPILES
from tracekit.tui.model.panes.findings import FINDING
from tracekit.tui.model.panes.instances import EVENT, INSTANCES
from tracekit.tui.model.panes.names import KERNELS, OPERATORS
from tracekit.tui.model.panes.overview import OVERVIEW
from tracekit.tui.model.panes.owners import LINES, MODULES
from tracekit.tui.model.panes.source import SOURCE
from tracekit.tui.model.panes.timeline import TIMELINE

FIXED = (OVERVIEW, KERNELS, OPERATORS, MODULES, LINES, SOURCE, TIMELINE, COMPILES)
PASSED_THROUGH = (FINDING, INSTANCES, EVENT)  # only Enter leads to these


def all_panes(opened: OpenReport) -> list[Pane]:
    """All panes; those with nothing to show are not listed, and chapters are added once every question is answered."""
    fixed = (pane if pane.applies(opened) else replace(pane, is_listed=False) for pane in FIXED)
    covered_chapters = {chapter for pane in FIXED for chapter in pane.chapters}
    return [*fixed, *(chapter_panes(opened, covered_chapters) if opened.is_whole else ()), *PASSED_THROUGH]
