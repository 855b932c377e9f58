"""The terminal UI of a study: its cells, their outcomes and the tables of its report as sheets; Enter opens the run of
a cell, and quitting that leads back.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
from msgspec import Struct
from textual import events
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.containers import Container, Horizontal
from textual.widgets import Static

from tracekit.base.names import sanitize
from tracekit.report import report
from tracekit.report.blocks import Sentences, Table
from tracekit.report.section import Section
from tracekit.report.sections.study_cells import SETTING, VARIANT
from tracekit.study import Study, read_study
from tracekit.study.recommendations import recommend
from tracekit.study.settings import settings
from tracekit.study.store import RUN
from tracekit.trace.schema import column
from tracekit.tui.keys import STUDY_KEYS
from tracekit.tui.model.sheet import Sheet
from tracekit.tui.terminal import leave_with_the_terminal
from tracekit.tui.widgets.below import LOW, Below
from tracekit.tui.widgets.grid import Grid
from tracekit.tui.widgets.lines import Chips, FilterLine, KeyBar

_REAL = pa.float64()
CELLS = pa.schema(
    [
        SETTING,
        VARIANT,
        column("seed", pa.int64(), "seed of every random number generator", role="identity"),
        column("outcome", pa.string(), "ok, oom, timeout, crash, error, skipped, interrupted, or planned"),
        column("step_ns", _REAL, "a step, unprofiled", "ns"),
        column(
            "speed_up", _REAL, "step time of the setting's first variant divided by its own, with the same seed", "×"
        ),
        column("compile_ns", _REAL, "time inside compilations", "ns"),
        column("above_start_bytes", pa.int64(), "peak memory beyond that before the first step", "B"),
        column("took_ns", _REAL, "time from its start to its end", "ns", role="detail"),
        column("why", pa.string(), "why it failed", role="detail"),
        column("recommendation", pa.string(), "recommendation for its setting", role="detail"),
        column("folder", pa.string(), "folder of the cell", role="detail"),
    ]
)


class StudyPages(Struct, frozen=True):
    """The pages, the one of the cells first; `runs` has the run of each row of that page, or None if it has none."""

    study: Study
    pages: list[Sheet]
    runs: list[Path | None]


def study_pages(folder: Path) -> StudyPages:
    """Read a study. Raises BadStudyError, and EmptyStudyError where no cell was planned."""
    from tracekit.profile import open_subject

    study = read_study(folder)
    rows, runs = list[dict[str, object]](), list[Path | None]()
    for setting in settings(study):
        baseline, advice = setting.groups[0], recommend(setting).sentence
        for group in setting.groups:
            for result in group.results:
                measured, against = result.measured, baseline.measured.get(result.cell.seed)
                memory = result.variant.memory if result.variant is not None else None
                speed_up = None
                if measured is not None and against is not None and group is not baseline:
                    speed_up = against.step_ns / measured.step_ns
                row = {
                    "setting": setting.name,
                    "variant": group.variant,
                    "seed": result.cell.seed,
                    "outcome": result.outcome,
                    "step_ns": measured.step_ns if measured is not None else None,
                    "speed_up": speed_up,
                    "compile_ns": measured.compile_ns if measured is not None else None,
                    "above_start_bytes": memory.above_start_bytes if memory is not None else None,
                    "took_ns": result.record.seconds * 1e9 if result.record is not None else None,
                    "why": result.record.error if result.record is not None else "it has not been run yet",
                    "recommendation": advice,
                    "folder": str(result.folder),
                }
                rows.append(row)
                runs.append(result.folder / RUN if result.run is not None else None)
    cells = Sheet("cells", pa.Table.from_pylist(rows, CELLS), "Cells", runs.__getitem__)
    sections = report(open_subject([folder])).sections
    pages = [page for section in sections if section.id != "variants" for page in _sheets(section)]
    return StudyPages(study, [cells, *pages], runs)


def _sheets(section: Section) -> Iterator[Sheet]:
    """The tables of a section; if it has none, its sentences as a table."""
    tables = [block for block in section.blocks if isinstance(block, Table) and len(block.rows)]
    for table in tables:
        title = section.title if table is tables[0] else table.name.replace("_", " ")
        yield Sheet(table.name, table.rows, sanitize(title))
    sentences = [line for block in section.blocks if isinstance(block, Sentences) for line in block.lines]
    if sentences and not tables:
        rows = pa.table({"sentence": sentences}, schema=pa.schema([column("sentence", pa.string(), section.title)]))
        yield Sheet(section.id, rows, sanitize(section.title))


def browse(folder: Path) -> int:
    """Show a study, and the runs of the cells that the user opens, until the user quits. Raises TracekitError."""
    from tracekit.tui.app import build_app

    pages, row = study_pages(folder), 0
    while True:
        app = StudyApp(pages, row)
        app.run()
        if app.chosen is None:
            return app.return_code or 0
        row, run = app.chosen, pages.runs[app.chosen]
        assert run is not None
        opened = build_app([run])
        opened.run()
        if opened.return_code and opened.failure is None:  # a signal or a bug in tracekit ended it
            return opened.return_code


class StudyApp(App[None]):
    """The pages of a study; `chosen` is the row of the cell whose run the user wants to open."""

    TITLE = "tracekit"
    CSS_PATH = "app.tcss"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [*STUDY_KEYS]

    def __init__(self, pages: StudyPages, row: int = 0) -> None:
        super().__init__()
        self._pages = pages
        self._page = 0
        self._begin = row
        self.chosen: int | None = None

    @property
    def page(self) -> Sheet:
        """The page on screen."""
        return self._pages.pages[self._page]

    @property
    def grid(self) -> Grid:
        """The table of that page."""
        return self.query_one(Grid)

    def compose(self) -> ComposeResult:
        """The study's name, the pages' chips, the table, details of its row, the keys."""
        study = self._pages.study
        succeeded = sum(result.outcome == "ok" for result in study.results)
        with Horizontal(id="top"):
            yield Static("tracekit", id="brand", markup=False)
            yield Static(sanitize(f"study {study.folder.resolve().name}"), id="crumbs", markup=False)
            yield Static(f"{succeeded} of {len(study.results)} cells succeeded", id="state", markup=False)
        yield Chips()
        with Container(id="stage"):
            yield Grid(self.page, self._begin)
        yield Below()
        yield FilterLine()
        yield KeyBar()

    def on_mount(self) -> None:
        """Give the table the focus."""
        self.animation_level = "none"
        leave_with_the_terminal(self)
        self.grid.styles.height = "1fr"
        self.grid.focus()
        self._show_chips()

    def on_resize(self, event: events.Resize) -> None:
        """Leave fewer lines for the details of the row on a small screen."""
        self.set_class(event.size.height < LOW, "-low")

    def on_grid_moved(self) -> None:
        """Show the row under the cursor in full."""
        self.query_one(Below).show(self.grid.sheet, self.grid.cursor, None)

    def on_grid_entered(self) -> None:
        """Open the run of a cell."""
        self.chosen = self.grid.sheet.row_at(self.grid.cursor)
        self.exit()

    def on_chips_picked(self, message: Chips.Picked) -> None:
        """Go to the page that was clicked."""
        self._go(next(k for k, page in enumerate(self._pages.pages) if page.name == message.name))

    def action_pane(self, key: str) -> None:
        """Go to the page of that digit."""
        number = "1234567890".index(key)
        if number < len(self._pages.pages):
            self._go(number)

    def action_turn(self, way: int) -> None:
        """Go to the next or the previous page, wrapping around at the ends."""
        self._go((self._page + way) % len(self._pages.pages))

    def action_filter(self) -> None:
        """Ask for the words that rows must contain."""
        self.query_one(FilterLine).ask(self.grid)

    def action_widen(self) -> None:
        """Show all rows again."""
        self.query_one(FilterLine).drop(self.grid)

    def _go(self, number: int) -> None:
        if number != self._page:
            self._page = number
            self.grid.change(self.page)
            self._show_chips()

    def _show_chips(self) -> None:
        digits = [*"1234567890"] + [""] * len(self._pages.pages)
        chips = [(digit, page.name, page.title) for digit, page in zip(digits, self._pages.pages, strict=False)]
        self.query_one(Chips).show(chips, self.page.name)
