"""The content of the terminal UI without a terminal: its panes, queried one by one."""

from __future__ import annotations

from pathlib import Path

from tracekit.tui.model.bucket_table import BucketTable
from tracekit.tui.model.content import Code, Content, Prose
from tracekit.tui.model.opened import OpenReport
from tracekit.tui.model.opening import Reading, open_report
from tracekit.tui.model.panes import all_panes
from tracekit.tui.model.selection import Selection
from tracekit.tui.model.sheet import Sheet
from tracekit.tui.model.strip import StepStrip


def opened(paths: list[Path], baseline: str | None = None, infer_steps: bool = False) -> OpenReport:
    return open_report(paths, baseline, infer_steps, Reading())


def ask(opened: OpenReport, selection: Selection) -> Content:
    """The answer of a selection's pane to that selection."""
    pane = next(pane for pane in all_panes(opened) if pane.name == selection.pane)
    return pane.query(opened, selection)


def sheet(content: Content, name: str) -> Sheet:
    return next(each for each in content.sheets if each.name == name)


def rows(sheet: Sheet) -> list[dict[str, str]]:
    """The rows as they are shown, by the titles of the columns."""
    return [dict(zip(sheet.titles, map(str.strip, row), strict=True)) for row in sheet.cells(0, len(sheet))]


def texts(content: Content) -> list[str]:
    """Everything that a pane shows."""
    shown: list[str] = []
    for piece in content.pieces:
        match piece:
            case Prose():
                shown += [piece.title, *piece.lines]
            case Sheet() | Code():
                table = piece.sheet if isinstance(piece, Code) else piece
                shown += [table.title, *table.titles, *(cell for row in table.cells(0, len(table)) for cell in row)]
                shown += [value for index in range(len(table)) for _, value in table.row_in_full(index)]
            case BucketTable():
                shown += [piece.title, *(line.label for line in piece.lines), *piece.unanswered.values()]
            case StepStrip():
                shown += [each for line in piece.lines for each in (line.name, piece.legend(line))]
    return shown


def everything(paths: list[Path]) -> str:
    """Everything that all listed panes show."""
    report = opened(paths)
    panes = [pane for pane in all_panes(report) if pane.is_listed]
    said = [text for pane in panes for text in (pane.title, *texts(pane.query(report, Selection(pane.name))))]
    return " ".join(said)
