"""The terminal UI: what its keys do, and the commands of its palette."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from string import ascii_lowercase
from typing import ClassVar, cast

from rich.text import Text
from textual.app import App, ComposeResult, SystemCommand
from textual.binding import BindingType
from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.screen import Screen

from tracekit.base.names import sanitize
from tracekit.base.pages import Kind as PageKind
from tracekit.errors import TracekitError
from tracekit.findings.choice import ALL, Choice
from tracekit.tui.arriving import Arrivals, Read
from tracekit.tui.browser import Browser
from tracekit.tui.exporting import copy, edit, export
from tracekit.tui.keys import KEYS, NEED_CONTENT, keys_for
from tracekit.tui.model.navigation import Navigation
from tracekit.tui.model.opened import OpenReport, has_gpu
from tracekit.tui.model.panes.names import to_name
from tracekit.tui.model.panes.overview import VIEWS, explained_id, findings_sheet
from tracekit.tui.model.panes.owners import on_this_machine
from tracekit.tui.model.selection import Kind, Selection
from tracekit.tui.screens import ChoiceScreen, PageScreen, explaining
from tracekit.tui.terminal import leave_with_the_terminal
from tracekit.tui.widgets.grid import Grid
from tracekit.tui.widgets.lines import FilterLine
from tracekit.vocabulary.kernel_names import short_kernel

Command = tuple[str, str, Callable[[], object]]  # its title, what it does, and how
_STEPS = 2_000  # more than anybody will look for by number


class Commands(Provider):
    """The commands that apply now."""

    async def discover(self) -> Hits:
        """Every command, before anything is typed."""
        for title, about, act in self._commands():
            yield DiscoveryHit(title, act, help=about)

    async def search(self, query: str) -> Hits:
        """The commands whose titles contain every word of the query, those in which they come earliest first.

        Textual's own search finds letters scattered over a title, of which the names of kernels have all.
        """
        words = query.lower().split()
        for title, about, act in self._commands():
            places = [title.lower().find(word) for word in words]
            if min(places, default=-1) >= 0:
                marked_title = Text(title)
                marked_title.highlight_words(words, "bold underline", case_sensitive=False)
                yield Hit(1 / (1 + sum(places)), Content.from_rich_text(marked_title), act, help=about)

    def _commands(self) -> Iterator[Command]:
        app = cast("TracekitApp", self.app)
        for key in KEYS:
            if key.tooltip and key.action and key.id != "palette" and "(" not in key.action:
                about = f"{key.tooltip} ({key.key_display or key.key})"
                yield key.description or key.tooltip, about, partial(app.run_action, key.action)
        if app.opened is not None:
            yield from commands_of(app, app.opened)
        for theme in sorted(app.available_themes):
            yield f"Theme {theme}", "Colours of the screen", partial(setattr, app, "theme", theme)


def build_app(
    paths: list[Path], baseline: str | None = None, infer_steps: bool = True, choice: Choice | None = None
) -> "TracekitApp":
    """Make the app for these inputs, both for the command line and for tests; without a choice, for all findings."""
    return TracekitApp(paths, baseline, infer_steps, choice or ALL)


class TracekitApp(App[None]):
    """Reads the inputs (`arrivals`), hands them to the `browser` as they arrive, and handles the keys."""

    TITLE = "tracekit"
    CSS_PATH = "app.tcss"
    AUTO_FOCUS = None  # otherwise the hidden filter line would get the focus
    COMMANDS = {Commands}  # noqa: RUF012 - as Textual declares it
    BINDINGS: ClassVar[list[BindingType]] = [*KEYS]

    def __init__(self, paths: list[Path], baseline: str | None, infer_steps: bool, choice: Choice) -> None:
        super().__init__()
        self.arrivals = Arrivals(self, paths, baseline, infer_steps, choice)
        self.browser = Browser(self.arrivals)

    def compose(self) -> ComposeResult:
        """The browser fills the screen."""
        yield self.browser

    def on_mount(self) -> None:
        """Start reading."""
        self.animation_level = "none"  # animations look slow, and over a slow connection they are
        self.set_class(self.no_color, "-no-color")
        leave_with_the_terminal(self)
        self.arrivals.start()

    async def on_read(self, message: Read) -> None:
        """Show what was read, or why there is nothing to show."""
        self.arrivals.is_reading = not message.ticket
        if message.error is None:
            self.browser.open(message.result)
        elif not isinstance(message.error, TracekitError):
            raise message.error
        elif self.opened is not None:
            self.notify(sanitize(str(message.error)), severity="error")
        else:
            self.arrivals.failure = message.error
            await self.browser.fail(sanitize(str(message.error)))

    @property
    def navigation(self) -> Navigation:
        """Where the user is."""
        return self.browser.navigation

    @property
    def opened(self) -> OpenReport | None:
        """What has been read so far."""
        return self.navigation.opened

    @property
    def now(self) -> Selection:
        """What is selected."""
        return self.navigation.now

    @property
    def grid(self) -> Grid | None:
        """The table that has the focus, or else the first one."""
        return self.browser.grid

    @property
    def failure(self) -> TracekitError | None:
        """Why nothing was opened."""
        return self.arrivals.failure

    @property
    def is_settled(self) -> bool:
        """Whether everything has been read and the selection is on screen."""
        return self.navigation.is_shown and not self.arrivals.is_reading

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool:
        """Hide the keys that have nothing to do."""
        if len(self.screen_stack) > 1:
            return action == "quit"
        if self.opened is None:
            return action not in NEED_CONTENT
        match action:
            case "baseline":
                return len(self.opened.variants) > 1 and not self.arrivals.is_reading
            case "explain":
                return bool(self.explained)
            case "edit":
                return self.browser.place is not None
            case "filter":
                return self.browser.searched is not None and not isinstance(self.focused, FilterLine)
            case "copy":
                return self.grid is not None and len(self.grid.sheet) > 0
            case "timeline":
                return self.now.pane != "timeline" or self.now.of("event") is not None
            case "widen":
                return self.now.widened() != self.now or (self.grid is not None and bool(self.grid.sheet.pattern))
            case _:
                return True

    async def action_quit(self) -> None:
        """Leave."""
        self.exit(return_code=1 if self.failure is not None else 0)

    async def action_widen(self) -> None:
        """Drop the filter if there is one, or else the last narrowing; quit if nothing has been read yet."""
        if self.opened is None:
            await self.action_quit()
        elif not self.browser.show_all_rows():
            self.browser.go(self.now.widened())

    async def action_back(self) -> None:
        """Go back to what was selected before."""
        self.browser.visit(self.navigation.history.back())

    def action_forth(self) -> None:
        """Go forward again."""
        self.browser.visit(self.navigation.history.forth())

    def action_view(self) -> None:
        """Switch between wall time and host time."""
        self.browser.go(self.now.seen(VIEWS[1 - VIEWS.index(self.now.view)]))

    def action_baseline(self) -> None:
        """Compare the variants with the next of them."""
        if self.opened is not None:
            self.browser.set_baseline(self.opened.next_baseline())

    def action_pane(self, key: str) -> None:
        """Go to the pane of that key."""
        if (pane := self.navigation.keys.get(key)) is not None:
            self.browser.go(self.now.at(pane.name))

    def action_turn(self, way: int) -> None:
        """Go to the next or the previous pane, wrapping around at the ends."""
        self.browser.go(self.navigation.beside(way))

    def action_timeline(self) -> None:
        """Show the row on the timeline; if already there, show what encloses the selected event."""
        if self.now.pane != "timeline":
            self.browser.show_on_timeline(otherwise=self.now.at("timeline"))
        elif self.now.of("event") is not None:
            self.browser.go(self.now.at("event"))

    def action_jump(self) -> None:
        """Choose a pane by its key, or by a letter if it has none."""

        def go_to(selection: Selection | None) -> None:
            if selection is not None:
                self.browser.go(selection)

        letters = iter(ascii_lowercase.replace("q", ""))  # which closes the list
        chips = self.navigation.chips
        choices = [(key or next(letters), pane.title, self.now.at(pane.name)) for key, pane in chips]
        self.push_screen(ChoiceScreen("Go to", choices), go_to)

    def action_filter(self) -> None:
        """Ask for the words that rows must contain."""
        self.browser.filter()

    def action_copy(self) -> None:
        """Copy the name, the row, or the table as it is on screen."""
        if self.grid is not None and len(self.grid.sheet):
            copy(self, self.grid.sheet, self.grid.cursor)

    def action_export(self) -> None:
        """Write what is on screen to a file in the current folder."""
        export(self, self.now.pane, self.grid.sheet if self.grid is not None else None)

    @property
    def explained(self) -> str:
        """The id of the finding or the bucket that is under the cursor or selected; empty for none."""
        if self.opened is None:
            return ""
        sheet, cursor = (self.grid.sheet, self.grid.cursor) if self.grid is not None else (None, 0)
        return explained_id(self.opened, self.now, sheet, cursor)

    def action_explain(self) -> None:
        """Show the page of the finding or the bucket."""
        from tracekit.report.explained import pages  # it imports every rule

        kind: PageKind = "bucket" if self.grid is not None and self.grid.sheet.name == "buckets" else "finding"
        if (page := pages(kind).get(self.explained)) is not None:
            self.push_screen(PageScreen(page))
        else:
            self.notify(f"{sanitize(self.explained)} is another package's, and has no page.", severity="warning")

    def action_edit(self) -> None:
        """Open the line in the user's editor."""
        place, opened = self.browser.place, self.opened
        if place is None or opened is None:
            return
        path = on_this_machine(opened, place.file)
        if path is None:
            self.notify(f"{sanitize(place.file)} is not on this machine.", severity="warning")
        elif failed := edit(self, path, place.line):
            self.notify(sanitize(failed), severity="error")

    def action_help(self) -> None:
        """Explain the pane, the widget with the focus, the keys and the words."""
        pane = self.navigation.pane if self.navigation.shown is not None else None
        sheets = [grid.sheet for grid in self.browser.grids]
        self.push_screen(
            explaining(pane, self.focused, sheets, keys_for(sum(not pane.key for pane in self.navigation.listed)))
        )

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Leave out Textual's commands: the palette has those of this app."""
        return ()


def commands_of(app: TracekitApp, opened: OpenReport) -> Iterator[Command]:
    """Panes, variants, findings and steps; kernels, operators and lines, which lead to where Enter on them does."""
    now, go = app.now, app.browser.go
    for pane in app.navigation.listed:
        yield f"Go to {pane.title}", pane.help, partial(go, now.at(pane.name))
    for name in opened.variants:
        label = sanitize(name, 60)
        narrowed = now.narrowed("variant", name, label)
        yield f"Variant {label}", "Only this variant and its baseline", partial(go, narrowed)
        yield f"Baseline {label}", "Compare the other variants with it", partial(app.browser.set_baseline, name)
    findings = findings_sheet(opened, now)
    for index in range(len(findings)):
        cells = dict(findings.row_in_full(index))
        target = findings.destination(index)
        if isinstance(target, Selection):
            yield f"Finding {cells['finding']}", cells.get("variant", ""), partial(go, target)
    behind = "kernels" if has_gpu(opened.report.profiles) else "instances"
    panes: dict[Kind, str] = {"kernel": "instances", "operator": behind}
    for kind, pane_name in panes.items():
        tables = opened.tables(f"{kind}s", opened.report.profiles).values()
        for name in dict.fromkeys(name for table in tables for name in table["name"].to_pylist() if name):
            label = short_kernel(name) if kind == "kernel" else name
            to_pane = partial(go, to_name(now, kind, name, pane_name))
            yield f"{kind.capitalize()} {sanitize(name, 200)}", sanitize(label, 80), to_pane
    lines = (line for variant in opened.owners for owner in variant.means.owners for line in owner.lines)
    for file, number in dict.fromkeys((line.file, line.line) for line in lines):
        yield f"Line {sanitize(file, 200)}:{number}", "Your source", partial(go, now.to_line(file, number))
    numbers = sorted({number for profile in opened.report.profiles for number in profile.trace.steps.number})
    for number in numbers[:_STEPS]:
        yield f"Step {number}", "Narrow everything to it", partial(go, now.to_steps(number, number))
