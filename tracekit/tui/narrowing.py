"""What widgets report, and how that narrows the selection."""

from tracekit.tui.model.panes.instances import about, event_label
from tracekit.tui.selecting import Panes
from tracekit.tui.timeline.messages import Chosen, RangeChosen
from tracekit.tui.widgets.chips import Chips
from tracekit.tui.widgets.crumbs import Crumbs
from tracekit.tui.widgets.grid import Grid
from tracekit.tui.widgets.steps import Steps
from tracekit.units import duration


class Narrowing(Panes):
    """Answers the messages of tables, of the line of steps, of chips and of the timeline."""

    def on_grid_entered(self, message: Grid.Entered) -> None:
        """Narrow to a row."""
        target = message.grid.sheet.enter(message.grid.sheet.row_at(message.grid.cursor))
        if target is not None:
            self.go(target)

    def on_grid_left(self, message: Grid.Left) -> None:
        """On to the next table."""
        if self.view is not None:
            self.view.leave(message.grid, message.way)

    def on_steps_left(self, message: Steps.Left) -> None:
        """On to the next table."""
        if self.view is not None:
            self.view.leave(message.widget, message.way)

    def on_steps_chosen(self, message: Steps.Chosen) -> None:
        """Narrow to these steps."""
        first, last = message.first, message.last
        label = f"step {first}" if first == last else f"steps {first}–{last}"
        self.go(self.now.narrowed("steps", (first, last), label))

    def on_chips_picked(self, message: Chips.Picked) -> None:
        """Go to a pane."""
        self.go(self.now.at(message.name))

    def on_chosen(self, message: Chosen) -> None:
        """An event was selected on the timeline: it is the selection, and described below."""
        opened, name, row = self.opened, message.stretch.variant, message.row
        if opened is None or self.now.pane != "timeline" or row < 0:
            return
        profile = opened.profile(name)
        label = event_label(profile, row)
        if self.now.of("event") != (name, row):
            self.history = self.history.replaced(self.now.without("event").narrowed("event", (name, row), label))
            self.shown = self.now
            self.query_one(Crumbs).show(self.opened_names, self._crumbs())
        if message.entered:
            self.go(self.now.at("event"))
        else:
            self._background.ask((opened, self.now), lambda: about(profile, row))

    def on_range_chosen(self, message: RangeChosen) -> None:
        """A range of time narrows what is selected."""
        stretch = message.stretch
        label = f"{duration(stretch.end_ns - stretch.start_ns)} of {stretch.variant}"
        self.go(
            self.now.without("event").narrowed("window", (stretch.variant, stretch.start_ns, stretch.end_ns), label)
        )
