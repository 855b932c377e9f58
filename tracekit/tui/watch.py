"""The terminal UI of a watch: how long steps took over hours, the slow ones with their causes, and what its report says
besides. It follows a training that still runs. Enter on a step that started a trace opens that trace's timeline, and
quitting that leads back.
"""

import time
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace
from textual.widget import Widget
from textual.widgets import Static

from tracekit.base.names import sanitize
from tracekit.base.units import many
from tracekit.engine.buckets import BUCKETS
from tracekit.errors import TracekitError
from tracekit.profile import Subject
from tracekit.profile.subject import Untraced
from tracekit.report import report
from tracekit.report.blocks import Notes, Sentences, Series
from tracekit.report.sections.watch_slow_steps import SLOW
from tracekit.tui.arriving import Background, Done
from tracekit.tui.model.sheet import Sheet
from tracekit.tui.model.strip import StepStrip, strip_of
from tracekit.tui.paged import PagedApp, sheets
from tracekit.tui.widgets.steps import Steps
from tracekit.watched import Record
from tracekit.watched.reading import ENDING, Watched, read_watch
from tracekit.watched.registry import began

LOOK_S = 1.0  # between two looks at how many steps there are
_MOST_OF_A_CORE = 0.05  # for reading the record again and again: a longer read is repeated less often
_RUNNING_S = 60.0  # since the last step ended: after a longer time, the job may have ended
_PAGES = ("watch_slow_steps", "watch_causes", "watch_parts", "watch_traces", "watch_ranks", "watch_facts")
_TRACED = "▸", BUCKETS["gpu_copy"].colour  # marks a step that a trace follows
Written = tuple[tuple[str, int, int], ...]


class WatchPages(Struct, frozen=True):
    """What is shown of a record: sentences, the steps over time, and the pages, the slow steps first."""

    watched: Watched
    lead: tuple[str, ...]
    strip: StepStrip
    pages: list[Sheet]
    written: Written  # when it was read
    took_s: float


def watch_pages(path: Path) -> WatchPages:
    """Read a record, or of a folder the newest one. Raises BadWatchError."""
    began, written = time.thread_time(), entries_written(path)
    watched = read_watch(path)
    # The traces that the watch took are opened one by one, when they are asked for.
    only_watch = Subject([Untraced("watch", "ok", "its traces are not opened here")], watch=watched)
    sections = report(only_watch).sections
    blocks = [block for section in sections for block in section.blocks]
    lead = [line for block in blocks if isinstance(block, Sentences) and block.tone == "lead" for line in block.lines]
    lead += [note.text for block in blocks if isinstance(block, Notes) for note in block.notes]
    lines = [line for block in blocks if isinstance(block, Series) for line in block.lines]
    made = {sheet.name: sheet for section in sections for sheet in sheets(section)}
    made.setdefault("watch_slow_steps", Sheet("watch_slow_steps", SLOW.empty_table(), "Slow steps"))
    pages = [_leading_on(watched, made[name]) for name in _PAGES if name in made]
    strip = strip_of(lines, None, selectable=False)
    return WatchPages(watched, tuple(lead), strip, pages, written, time.thread_time() - began)


def _leading_on(watched: Watched, sheet: Sheet) -> Sheet:
    """The page, in which Enter leads to the traces that the watch took."""
    column = {"watch_slow_steps": "step", "watch_traces": "after"}.get(sheet.name)
    if column is None:
        return sheet
    traces = [watched.trace_after(number) for number in sheet.rows[column].to_pylist()]
    paths = [trace.path if trace is not None else None for trace in traces]
    marks = {row: _TRACED for row, path in enumerate(paths) if path is not None}
    return replace(sheet, enter=paths.__getitem__, marks=marks if sheet.name == "watch_slow_steps" else {})


def entries_written(path: Path) -> Written:
    """How many steps, and how many slow ones, each record in that place has: it takes no time to look."""
    folder = path if path.is_dir() else path.parent
    written = []
    for file in sorted(folder.glob(f"*{ENDING}")):
        try:
            record = Record.open(file)
        except TracekitError:  # it says so where it is read
            continue
        written.append((file.name, record.steps.count, record.slow.count))
        record.close()
    return tuple(written)


def browse(path: Path) -> int:
    """Show a watch, and the traces that the user opens, until the user quits. Raises TracekitError."""
    from tracekit.tui.app import build_app

    page = row = 0
    while True:
        app = WatchApp(path, watch_pages(path), row, page)
        app.run()
        if app.chosen is None:
            return app.return_code or 0
        page, row, trace = app.number, app.chosen, app.page.enter(app.chosen)
        assert isinstance(trace, Path)
        opened = build_app([trace])
        opened.navigation.first_pane = "timeline"
        opened.run()
        if opened.return_code and opened.failure is None:  # a signal or a bug in tracekit ended it
            return opened.return_code


class Reread(Done):
    """The record was read again."""


class WatchApp(PagedApp):
    """The pages of a watch, which are read again while steps are added."""

    def __init__(self, path: Path, shown: WatchPages, row: int = 0, page: int = 0) -> None:
        pages = shown.pages
        super().__init__(f"watch {shown.watched.folder.resolve().name}", pages, row, page if page < len(pages) else 0)
        self._path, self.shown = path, shown
        self._written, self._next_s = shown.written, 0.0
        self._is_reading = False
        self._background = Background(self, Reread)

    @property
    def state(self) -> str:
        """How many steps there are, and whether more are coming."""
        shown = self.shown.watched.shown
        steps, last = many(self.shown.watched.number_of_steps, "step"), shown.steps[-1:]
        ended_s = max(((step.began_ns + step.host_ns) / 1e9 for step in last), default=0.0)
        may_run = began(shown.facts.process) is not None  # elsewhere, another process may have its number
        if not last or (may_run and time.time() - ended_s < _RUNNING_S):
            return f"{steps}, running"
        return f"{steps}, the last at {time.strftime('%Y-%m-%d %H:%M:%S', time.gmtime(ended_s))} UTC"

    def above(self) -> Iterator[Widget]:
        """What the report begins with, and the steps over time."""
        yield Static(self._lead, id="lead", classes="prose lead", markup=False)
        over_time = Steps(self.shown.strip)
        over_time.id = "over-time"
        yield over_time

    def on_mount(self) -> None:
        """Begin to look whether steps were added."""
        super().on_mount()
        self.set_interval(LOOK_S, self.look)

    def look(self) -> None:
        """Read the record again if steps were added, unless that would take too much of a core."""
        if self._is_reading or time.monotonic() < self._next_s:
            return
        if entries_written(self._path) != self.shown.written:
            self._is_reading = True
            self._background.ask(None, lambda: watch_pages(self._path))
        else:
            self.query_one("#state", Static).update(self.state)

    def on_reread(self, message: Reread) -> None:
        """Show what was read; where it could not be read, what was shown before stays."""
        self._is_reading = False
        if message.error is not None:
            if not isinstance(message.error, TracekitError):
                raise message.error
            self.notify(sanitize(str(message.error)), severity="error")
            self._next_s = time.monotonic() + _RUNNING_S
            return
        before, self.shown = self.shown, message.result
        self._next_s = time.monotonic() + self.shown.took_s / _MOST_OF_A_CORE
        self.query_one("#state", Static).update(self.state)
        self.query_one("#lead", Static).update(self._lead)
        if self.shown.strip != before.strip:
            self.query_one(Steps).show(self.shown.strip)
        self._follow()

    @property
    def _lead(self) -> str:
        return "\n".join(self.shown.lead)

    def _follow(self) -> None:
        """Show the page as it is now, in the same order and filtered by the same words, the cursor on the same row."""
        now, row = self.page, self.grid.sheet.row_at(self.grid.cursor) if len(self.grid.sheet) else 0
        identity = now.rows[0][row].as_py() if len(now.rows) else None
        self.pages = self.shown.pages
        self.number = next((k for k, page in enumerate(self.pages) if page.name == now.name), 0)
        self.show_chips()
        if self.page.rows.equals(now.rows):
            return
        sort, pattern = self.grid.sheet.sort, self.grid.sheet.pattern
        sheet = self.page.filtered(pattern)
        sheet = sheet if sort is None else sheet.sorted_by(*sort)
        self.grid.change(sheet)
        firsts = self.page.rows[0].to_pylist()
        shown = [firsts[number] for number in sheet.order.tolist()]
        if identity in shown:
            self.grid.go(shown.index(identity))
