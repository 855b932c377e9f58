"""The screen from top to bottom: the selection, the panes' chips, the pane, details of its row, the keys."""

from msgspec import Struct
from textual.app import ComposeResult
from textual.containers import Container, Horizontal
from textual.widgets import Static

from tracekit.base.units import duration
from tracekit.errors import TracekitError
from tracekit.tui.arriving import Arrivals, Background, Done
from tracekit.tui.model.content import Content, Place, prose
from tracekit.tui.model.navigation import Navigation
from tracekit.tui.model.opened import OpenReport
from tracekit.tui.model.panes.instances import About, about, about_gap
from tracekit.tui.model.panes.timeline import on_timeline
from tracekit.tui.model.selection import History, Selection
from tracekit.tui.model.sheet import ON_TIMELINE
from tracekit.tui.timeline.widget import Chosen, Cleared, RangeChosen, Timeline
from tracekit.tui.widgets.below import LOW, Below
from tracekit.tui.widgets.grid import Grid
from tracekit.tui.widgets.lines import Chips, Crumbs, FilterLine, KeyBar, Progress, Searched, Status
from tracekit.tui.widgets.pane_view import Stage
from tracekit.tui.widgets.steps import Steps


class NoEvent(Struct, frozen=True):
    """That no event belongs to a row, and where to go nevertheless."""

    otherwise: Selection


class Browser(Container):
    """Shows where the user is and the answer of that pane; a choice in a widget leads to another selection.

    Panes are queried in the background. An answer that arrives after the user has moved on is discarded.
    """

    def __init__(self, arrivals: Arrivals) -> None:
        super().__init__()
        self.navigation = Navigation()
        self._arrivals = arrivals
        self._background = Background(self)

    def compose(self) -> ComposeResult:
        """From top to bottom."""
        with Horizontal(id="top"):
            yield Static("tracekit", id="brand", markup=False)
            yield Crumbs()
            yield Status(self._state)
        yield Chips()
        with Stage(id="stage"):
            yield Progress(self._arrivals.paths, self._arrivals.reading)
        yield Below(self.navigation.code_at)
        yield FilterLine()
        yield KeyBar()

    def on_resize(self) -> None:
        """Leave fewer lines for the details of the row on a small screen."""
        self.set_class(self.app.size.height < LOW, "-low")
        self.query_one(Status).show()
        self.call_after_refresh(self._show_row)

    # What is on screen.

    @property
    def grids(self) -> list[Grid]:
        """The tables of the pane."""
        pane = self.query_one(Stage).pane
        return pane.grids if pane is not None else []

    @property
    def grid(self) -> Grid | None:
        """The table that has the focus, or else the first one."""
        focused = self.screen.focused
        grids = self.grids
        return focused if isinstance(focused, Grid) and focused in grids else next(iter(grids), None)

    @property
    def place(self) -> Place | None:
        """The line of source that belongs to the row under the cursor, or else to the selection."""
        grid = self.grid
        return self.navigation.place(grid.sheet, grid.cursor) if grid is not None else self.navigation.place(None, 0)

    @property
    def searched(self) -> Searched | None:
        """The table or the timeline that can be searched."""
        focused = self.screen.focused
        return focused if isinstance(focused, Timeline) else self.grid

    def filter(self) -> None:
        """Ask for the words that rows, or names of events, must contain."""
        self.query_one(FilterLine).ask(self.searched)

    def show_all_rows(self) -> bool:
        """Drop the filter; False if there is none."""
        return self.query_one(FilterLine).drop(self.grid)

    # Going to a selection, and showing the answer of its pane.

    def open(self, opened: OpenReport) -> None:
        """Show this from now on."""
        self._remember()
        if self.navigation.open(opened):
            self._ask()
            self.query_one(Status).show()
        else:
            self._show_panes()
        self.refresh_bindings()

    def go(self, selection: Selection) -> None:
        """Select something else."""
        self.visit(self.navigation.history.visited(selection))

    def show_on_timeline(self, otherwise: Selection | None = None) -> None:
        """Show on the timeline what stands for the row under the cursor, or if nothing does, go where else to."""
        opened, selection, grid = self.navigation.opened, self.navigation.now, self.grid
        if opened is not None and grid is not None:
            sheet, cursor = grid.sheet, grid.cursor
            ask = lambda: on_timeline(opened, selection, sheet, cursor) or NoEvent(otherwise or selection)  # noqa: E731
            self._background.ask(self._ticket, ask)
        elif otherwise is not None:
            self.go(otherwise)

    def visit(self, history: History) -> None:
        """Go to the present entry of this history."""
        self._remember()
        if self.navigation.visit(history):
            self._ask()

    def set_baseline(self, name: str) -> None:
        """Compare the variants with that one."""
        opened = self.navigation.opened
        if opened is not None and name != opened.report.baseline.name:
            self._background.ask(("baseline", name), lambda: opened.against(name), can_be_overtaken=False)

    def _remember(self) -> None:
        """Remember where the cursor is, for when the user comes back."""
        if (grid := self.grid) is not None:
            self.navigation.remember((self.grids.index(grid), grid.cursor))

    @property
    def _ticket(self) -> tuple[OpenReport | None, Selection]:
        """That of work for the present selection: what comes of it counts only while the user stays there."""
        return self.navigation.opened, self.navigation.now

    def _ask(self) -> None:
        opened, selection, pane = self.navigation.opened, self.navigation.now, self.navigation.pane
        if opened is None:
            return
        if (answer := self.navigation.answer) is not None:
            self.post_message(Done(self._ticket, answer, None))
            return
        self._background.ask(self._ticket, lambda: pane.query(opened, selection))
        self.query_one(Status).show_soon()

    def _ask_about(self, opened: OpenReport, variant: str, row: int) -> None:
        self._background.ask(self._ticket, lambda: about(opened.profile(variant), row))

    async def on_done(self, message: Done) -> None:
        """Show what the background work produced: the answer of a pane, another baseline, or details of an event."""
        result = message.result
        if isinstance(message.error, TracekitError):
            result = Content((prose(str(message.error)),))
        elif message.error is not None:
            raise message.error
        is_current = message.ticket == self._ticket
        match result:
            case OpenReport():
                self.open(result)
            case About() if self.navigation.now.pane == "timeline":
                self.query_one(Below).tell(result.lines, result.place)
            case Selection() if is_current:
                self.go(result)
            case NoEvent() if is_current:
                self.app.notify("No event on the timeline belongs to this row.")
                self.go(result.otherwise)
            case Content() if is_current:
                await self._show(result)

    # What happens when something is chosen in a widget.

    def on_grid_entered(self, message: Grid.Entered) -> None:
        """Narrow to a row."""
        target = message.grid.sheet.destination(message.grid.cursor)
        if isinstance(target, Selection):
            self.go(target)
        elif target is ON_TIMELINE:
            self.show_on_timeline()

    def on_steps_chosen(self, message: Steps.Chosen) -> None:
        """Narrow to these steps."""
        self.go(self.navigation.now.to_steps(message.first, message.last))

    def on_chips_picked(self, message: Chips.Picked) -> None:
        """Go to a pane."""
        self.go(self.navigation.now.at(message.name))

    def on_range_chosen(self, message: RangeChosen) -> None:
        """Narrow to a range of time."""
        stretch = message.stretch
        label = f"{duration(stretch.end_ns - stretch.start_ns)} of {stretch.variant}"
        window = (stretch.variant, stretch.start_ns, stretch.end_ns)
        self.go(self.navigation.now.without("event").narrowed("window", window, label))

    def on_chosen(self, message: Chosen) -> None:
        """Select an event of the timeline, and describe it or show what encloses it."""
        opened, stretch, row = self.navigation.opened, message.stretch, message.row
        if opened is None or self.navigation.now.pane != "timeline":
            return
        self.navigation.point_at(stretch.variant, row, stretch)
        self._show_path()
        self.refresh_bindings()
        if message.category == "idle":
            profile = opened.profile(stretch.variant)
            self._background.ask(self._ticket, lambda: about_gap(profile, stretch.start_ns, stretch.end_ns))
        elif row < 0:
            self._show_below()
        elif message.entered:
            self.go(self.navigation.now.at("event"))
        else:
            self._ask_about(opened, stretch.variant, row)

    def on_cleared(self, _: Cleared) -> None:
        """Forget the event that was selected on the timeline."""
        if self.navigation.now.pane == "timeline":
            self.navigation.point_at_nothing()
            self._show_path()
            self._show_below()
            self.refresh_bindings()

    def on_grid_moved(self, message: Grid.Moved) -> None:
        """Show the row under the cursor in full."""
        if message.grid is self.grid:
            self._show_row()

    # What is shown where.

    async def fail(self, reason: str) -> None:
        """Say why there is nothing to show."""
        await self.query_one(Stage).put(Static(f"{reason}\n\nPress q to leave.", id="failure", markup=False))

    async def _show(self, content: Content) -> None:
        navigation, stage = self.navigation, self.query_one(Stage)
        navigation.answered(content)
        with self.app.batch_update():  # drawn at once
            self._show_path()
            self._show_panes()
            self.query_one(FilterLine).forget()
            await stage.show(content, navigation.begin(content))
            self._show_row()
            self.refresh_bindings()
        stage.forget_but(navigation.opened.report.profiles if navigation.opened is not None else ())
        event = navigation.now.of("event")
        if navigation.opened is not None and navigation.now.pane == "timeline" and event is not None:
            self._ask_about(navigation.opened, *event)
        elif not content.sheets:
            self._show_below()
        self.call_after_refresh(self._arrivals.drawn)

    def _show_path(self) -> None:
        opened = self.navigation.opened
        names = [path.name for path in self._arrivals.paths]
        names += [opened.about] if opened is not None and opened.about else []
        self.query_one(Crumbs).show(names, self.navigation.path)

    def _show_panes(self) -> None:
        self.query_one(Status).show()
        current, chips = self.navigation.pane, [(key, pane.name, pane.title) for key, pane in self.navigation.chips]
        self.query_one(Chips).show(chips, current.name if current.is_listed else "")

    def _state(self) -> tuple[str, bool]:
        """Which view is shown; and while that is so, that more is being read, or that an answer is in preparation."""
        is_asked = self.navigation.opened is not None and not self.navigation.is_shown
        if self._arrivals.is_reading:
            return self._arrivals.reading.brief, True
        return "working …" if is_asked else self.navigation.whose_time(self.app.size.width), is_asked

    def _show_row(self) -> None:
        if self.grid is not None:
            self._show_below()

    def _show_below(self) -> None:
        details, grid, place = self.query_one(Below), self.grid, self.place
        if grid is None and place is None:
            details.explain(self.navigation.pane.help)
        else:
            details.show(grid.sheet if grid is not None else None, grid.cursor if grid is not None else 0, place)
