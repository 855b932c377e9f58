"""The terminal UI: opens runs and traces in the background, then shows them room by room."""

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import Footer, LoadingIndicator, Static, TabbedContent

from tracekit.errors import TracekitError
from tracekit.sanitize import sanitize
from tracekit.trace.reading.convert import Seen
from tracekit.tui.background import Loaded, in_background
from tracekit.tui.chapters import VIEWS
from tracekit.tui.help import HelpScreen
from tracekit.tui.keys import KEYS, NEED_A_MODEL
from tracekit.tui.rooms import all_rooms
from tracekit.tui.rooms.room import Room
from tracekit.tui.view_model import ViewModel, open_view_model
from tracekit.units import count, size


def build_app(paths: list[Path], baseline: str | None = None, infer_steps: bool = False) -> "TracekitApp":
    """The app over these inputs, for the command line and for tests alike."""
    return TracekitApp(paths, baseline, infer_steps)


class TracekitApp(App[None]):
    """The view model, the view that is shown (`wall` or `host`), and the rooms. `failure` is why nothing was opened."""

    TITLE = "tracekit"
    CSS_PATH = "app.tcss"
    ENABLE_COMMAND_PALETTE = False
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (140, "-wide")]  # noqa: RUF012 - as Textual declares it
    BINDINGS: ClassVar[list[BindingType]] = [*KEYS]

    def __init__(self, paths: list[Path], baseline: str | None = None, infer_steps: bool = False) -> None:
        super().__init__()
        self._paths, self._baseline, self._infer_steps = paths, baseline, infer_steps
        self._loading = False
        self._seen: Seen | None = None
        self.model: ViewModel | None = None
        self.view = VIEWS[0]
        self.failure: TracekitError | None = None

    @property
    def room(self) -> Room | None:
        """The one that is shown."""
        panes = [tabs.active_pane for tabs in self.query(TabbedContent)]
        return next((pane for pane in panes if isinstance(pane, Room)), None)

    @property
    def opened(self) -> str:
        """What the user named, and what it turned out to be."""
        named = "  ".join(sanitize(path.name) for path in self._paths)
        return f"{named}  {self.model.about}" if self.model is not None else named

    def compose(self) -> ComposeResult:
        """What is opened on top, the rooms once they are there, the keys below."""
        with Horizontal(id="top"):
            yield Static("tracekit", id="brand", markup=False)
            yield Static(self.opened, id="opened", markup=False)
            yield Static("", id="state", markup=False)
        with Vertical(id="body"):
            yield Static(f"Reading {self.opened} …", id="reading", markup=False)
            yield LoadingIndicator()
            yield Static("", id="progress", markup=False)
        yield Footer()

    def on_mount(self) -> None:
        """Start reading, and say how far it is."""
        self._load(lambda: open_view_model(self._paths, self._baseline, self._watch, self._infer_steps))
        self.set_interval(0.2, self._show_progress)

    def _watch(self, seen: Seen) -> None:
        self._seen = seen  # called by the reading thread, thousands of times a second: no message for each

    def _show_progress(self) -> None:
        seen = self._seen
        for line in self.query("#progress").results(Static):
            if seen is not None:
                line.update(f"{size(seen.done)} of {size(seen.size)}, {count(seen.events)} events")

    def _load(self, work: Callable[[], ViewModel]) -> None:
        self._loading = True
        in_background(self, work)

    async def on_loaded(self, message: Loaded) -> None:
        """Show it; the first time, build the rooms too."""
        self._loading = False
        if isinstance(message.error, TracekitError):
            self.failure = message.error
            await self._replace(
                Static(f"{sanitize(str(message.error))}\n\nPress q to leave.", id="failure", markup=False)
            )
        elif message.error is not None:
            raise message.error
        if message.model is not None:
            first, self.model = self.model is None, message.model
            if first:
                await self._furnish(message.model)
            self.call_after_refresh(self._show)

    async def _furnish(self, model: ViewModel) -> None:
        self.view = model.overview.view
        self.animation_level = "none"  # gliding looks slow, and over a slow line it is
        tabs = TabbedContent()
        for room in all_rooms(model):
            tabs.compose_add_child(room)
        await self._replace(tabs)
        self.refresh_bindings()

    async def _replace(self, content: Static | TabbedContent) -> None:
        body = self.query_one("#body")
        await body.remove_children()
        await body.mount(content)

    def _show(self) -> None:
        if self.model is not None:
            state = f"{self.view} time"
            if len(self.model.variants) > 1:
                state += f", against {sanitize(self.model.overview.baseline, 24)}"
            self.query_one("#opened", Static).update(self.opened)
            self.query_one("#state", Static).update(state)
            for room in self.query(Room):
                room.show(self.model, self.view)

    def on_tabbed_content_tab_activated(self) -> None:
        """The keys go where the eyes are."""
        if self.room is not None:
            self.call_after_refresh(self.room.enter)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool:
        """What there is nothing to do for has no key."""
        if action == "baseline":
            return self.model is not None and len(self.model.variants) > 1
        return self.model is not None or action not in NEED_A_MODEL

    def action_view(self) -> None:
        """Switch between wall time and host time."""
        self.view = VIEWS[1 - VIEWS.index(self.view)]
        self._show()

    def action_baseline(self) -> None:
        """Set the variants against the next of them."""
        model = self.model
        if model is not None and not self._loading:
            self._load(lambda: model.against(model.next_baseline()))

    def action_room(self, number: int) -> None:
        """Go to the room of that number."""
        if self.query(f"#room-{number}"):
            self.query_one(TabbedContent).active = f"room-{number}"

    def action_turn(self, way: int) -> None:
        """Go to the next room, or the one before, round and round."""
        rooms = [*self.query(Room)]
        if self.room is not None:
            self.action_room((rooms.index(self.room) + way) % len(rooms) + 1)

    def action_help(self) -> None:
        """Explain the keys and the room."""
        self.push_screen(HelpScreen(KEYS, self.room))

    async def action_quit(self) -> None:
        """Leave."""
        self.exit(return_code=1 if self.failure is not None else 0)
