"""What is selected, and the pane on screen that answers for it."""

from pathlib import Path

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.timer import Timer
from textual.widgets import Input, Static

from tracekit.errors import TracekitError
from tracekit.names import short
from tracekit.tui.arriving import Arriving
from tracekit.tui.background import Background, Done
from tracekit.tui.lifecycle import leave_with_the_terminal
from tracekit.tui.model.content import Code, Content, Place, place_in, prose
from tracekit.tui.model.opened import Opened
from tracekit.tui.model.panes import all_panes
from tracekit.tui.model.panes.instances import About, place_of
from tracekit.tui.model.panes.overview import VIEWS
from tracekit.tui.model.panes.pane import Pane
from tracekit.tui.model.panes.source import code_at
from tracekit.tui.model.selection import History, Selection
from tracekit.tui.widgets.below import Below
from tracekit.tui.widgets.chips import Chips
from tracekit.tui.widgets.crumbs import Crumbs
from tracekit.tui.widgets.grid import Grid
from tracekit.tui.widgets.key_bar import KeyBar
from tracekit.tui.widgets.pane_view import PaneView
from tracekit.tui.widgets.reading import Progress
from tracekit.tui.widgets.stage import Stage

_LOW = 36  # lines of a screen: below, what the row is gets few of them
_SOON_S = 0.25  # until it is said that an answer takes its time


class Panes(Arriving):
    """The history of what was selected, and what is on screen (`shown`: its selection)."""

    TITLE = "tracekit"
    CSS_PATH = "app.tcss"
    AUTO_FOCUS = None  # the hidden line for filters would have it

    def __init__(self, paths: list[Path], baseline: str | None = None, infer_steps: bool = False) -> None:
        super().__init__(paths, baseline, infer_steps)
        self._background = Background(self)
        self._cursors: dict[Selection, tuple[int, int]] = {}
        self._filtered: Grid | None = None
        self._codes: dict[tuple[object, ...], Code | None] = {}
        self._soon: Timer | None = None
        self.panes: list[Pane] = []
        self.history = History()
        self.shown: Selection | None = None

    @property
    def now(self) -> Selection:
        """What is selected."""
        return self.history.now

    @property
    def view(self) -> PaneView | None:
        """The pane on screen."""
        return self.query_one(Stage).pane

    @property
    def grid(self) -> Grid | None:
        """The table that has the keys, else the first one."""
        if isinstance(self.focused, Grid):
            return self.focused
        return next(iter(self.view.grids), None) if self.view is not None else None

    @property
    def listed(self) -> list[Pane]:
        """The panes that have a chip."""
        return [pane for pane in self.panes if pane.is_listed]

    def pane_of(self, selection: Selection) -> Pane:
        """The pane that a selection is shown in."""
        return next(pane for pane in self.panes if pane.name == selection.pane)

    def compose(self) -> ComposeResult:
        """What is selected on top, the panes' chips, the pane, what its row is, the keys."""
        with Horizontal(id="top"):
            yield Static("tracekit", id="brand", markup=False)
            yield Crumbs()
            yield Static("", id="state", markup=False)
        yield Chips()
        with Stage(id="stage"):
            yield Progress(self._paths, self._reading)
        yield Below(id="below")
        yield Input(placeholder="words that a row must contain; Enter keeps, Esc shows all", id="filter")
        yield KeyBar()

    def on_mount(self) -> None:
        """Start reading."""
        self.animation_level = "none"  # gliding looks slow, and over a slow line it is
        self.set_class(self.no_color, "-no-color")
        leave_with_the_terminal(self)
        self.start_reading()

    def on_resize(self, event: events.Resize) -> None:
        """A small screen leaves few lines for the row."""
        self.set_class(event.size.height < _LOW, "-low")
        self._show_state()
        self.call_after_refresh(self._show_row)

    async def on_done(self, message: Done) -> None:
        """Another baseline, or the answer to a selection."""
        if isinstance(message.error, TracekitError):
            await self._answer(message.ticket, Content((prose(str(message.error)),)))
        elif message.error is not None:
            raise message.error
        elif isinstance(message.result, Opened):
            self.become(message.result)
        elif isinstance(message.result, About):
            self._tell(message.result)
        else:
            await self._answer(message.ticket, message.result)

    def become(self, opened: Opened) -> None:
        """Show what was opened, where it was looked at before as far as that is still there."""
        before, self.opened, self.panes = self.opened, opened, all_panes(opened)
        if before is opened:  # every question has been answered meanwhile
            self._show_panes()
            self.refresh_bindings()
            return
        self._codes.clear()
        self._remember()
        self.shown = None
        names = {pane.name for pane in self.panes}
        if before is None or not {*before.variants} <= {*opened.variants} or self.now.pane not in names:
            # The first that arrived; or one that came later gave others new names, which the history does not know.
            answered = any(profile.means["wall"] is not None for profile in opened.report.profiles)
            self.history = History(Selection(view=VIEWS[0] if answered else VIEWS[1]))
        self.refresh_bindings()
        self.ask()
        self._show_state()

    def go(self, selection: Selection) -> None:
        """Select something else."""
        self.visit(self.history.visited(selection))

    def visit(self, history: History) -> None:
        """Go on, back or forth."""
        if self.opened is not None and history != self.history:
            self._remember()
            self.history = history
            self.ask()

    def _remember(self) -> None:
        if self.view is not None and self.shown is not None and self.grid is not None:
            self._cursors[self.shown] = self.view.grids.index(self.grid), self.grid.cursor

    def ask(self) -> None:
        """Have the pane answer for what is selected."""
        opened, selection = self.opened, self.now
        if opened is not None:
            pane = self.pane_of(selection)
            self._background.ask((opened, selection), lambda: pane.query(opened, selection))
            self._show_state_soon()

    async def _answer(self, ticket: object, content: Content) -> None:
        if ticket != (self.opened, self.now):
            return
        self.shown = self.now
        self.query_one(Crumbs).show(self.opened_names, self._crumbs())
        self._show_panes()
        self._filtered = None
        stage = self.query_one(Stage)
        await stage.show(content, self._cursors.get(self.now, content.begin))
        stage.forget_but(self.opened.report.profiles if self.opened is not None else ())
        self.refresh_bindings()
        if not content.sheets:
            self._show_below()
        self.call_after_refresh(self.is_seen.set)

    def _show_panes(self) -> None:
        self._show_state()
        here = self.now.pane if self.pane_of(self.now).is_listed else ""
        self.query_one(Chips).show([(pane.name, pane.title) for pane in self.listed], here)

    def _crumbs(self) -> list[str]:
        chosen = [facet.label for facet in self.now.facets]
        pane = self.pane_of(self.now)
        return [*chosen, pane.title] if not pane.is_listed and not chosen else chosen

    def _show_state(self) -> None:
        """Whose time it is; and while that lasts, that more is read, or that an answer is still being worked out."""
        if not self.screen_stack:  # the app is leaving
            return
        is_asked = self.opened is not None and self.shown != self.now
        state = self._reading.brief if self.is_reading else "working …" if is_asked else self._state()
        for each in self.query("#state").results(Static):  # none before the screen is composed
            each.update(state)
        if self.is_reading or is_asked:
            self._show_state_soon()

    def _show_state_soon(self) -> None:
        if self._soon is not None:
            self._soon.stop()
        self._soon = self.set_timer(_SOON_S, self._show_state)

    def _state(self) -> str:
        if self.opened is None:
            return ""
        if len(self.opened.variants) < 2:
            return f"{self.now.view} time"
        names, baseline = self.opened.variants, self.opened.report.baseline.name
        return f"{self.now.view} time, against {short(names, max(self.size.width // 8, 8))[names.index(baseline)]}"

    def on_grid_moved(self, message: Grid.Moved) -> None:
        """Show the row under the cursor in full."""
        if message.grid is self.grid:
            self._show_row()

    @property
    def place(self) -> Place | None:
        """The line of the row under the cursor; else of what is selected."""
        place = place_in(self.grid.sheet, self.grid.cursor) if self.grid is not None else None
        if place is not None or self.opened is None:
            return place
        if (line := self.now.of("line")) is not None:
            return Place(*line)
        event = self.now.of("event")
        return place_of(self.opened.profile(event[0]), event[1]) if event is not None else None

    def _tell(self, about: About) -> None:
        """An event in words, below the timeline."""
        if self.now.pane == "timeline":
            self.query_one(Below).tell(about.lines, about.place, self._code_at)

    def _show_row(self) -> None:
        if self.grid is not None:
            self._show_below()

    def _show_below(self) -> None:
        below, grid, place = self.query_one(Below), self.grid, self.place
        if grid is None and place is None:
            below.explain(self.pane_of(self.now).help)
        else:
            below.show(
                grid.sheet if grid is not None else None, grid.cursor if grid is not None else 0, place, self._code_at
            )

    def _code_at(self, place: Place) -> Code | None:
        key = place.file, self.now.view, self.now.of("steps")
        if key not in self._codes:
            self._codes[key] = code_at(self.opened, place, self.now) if self.opened is not None else None
        return self._codes[key]
