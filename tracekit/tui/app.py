"""The terminal UI: the keys, and what each of them does."""

import os
import shlex
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar

from textual.app import SuspendNotSupported, SystemCommand
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Input

from tracekit.engine.buckets import BUCKETS
from tracekit.sanitize import sanitize
from tracekit.tui.commands import Commands
from tracekit.tui.exporting import FORMATS, write
from tracekit.tui.keys import KEYS, NEED_CONTENT, keys_for
from tracekit.tui.model.panes.overview import VIEWS
from tracekit.tui.model.panes.source import on_this_machine
from tracekit.tui.narrowing import Narrowing
from tracekit.tui.screens.choice import LETTERS, ChoiceScreen
from tracekit.tui.screens.help import HelpScreen

_COPIED = 1_000  # rows: terminals drop what is much longer
_NAMED = {"name", "finding", "line", "module", "bucket", "call", "region", "inside of", "text"}  # titles of columns


def build_app(paths: list[Path], baseline: str | None = None, infer_steps: bool = False) -> "TracekitApp":
    """The app over these inputs, for the command line and for tests alike."""
    return TracekitApp(paths, baseline, infer_steps)


class TracekitApp(Narrowing):
    """What the keys do."""

    COMMANDS = {Commands}  # noqa: RUF012 - as Textual declares it
    BINDINGS: ClassVar[list[BindingType]] = [*KEYS]

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool:
        """What there is nothing to do for has no key."""
        if len(self.screen_stack) > 1:
            return action == "quit"
        if action == "baseline":
            return self.opened is not None and len(self.opened.variants) > 1 and not self.is_reading
        if action == "edit":
            return self.opened is not None and self.place is not None
        return self.opened is not None or action not in NEED_CONTENT

    async def action_quit(self) -> None:
        """Leave."""
        self.exit(return_code=1 if self.failure is not None else 0)

    async def action_widen(self) -> None:
        """Show all rows again; else widen by one; while reading, leave."""
        field = self.query_one("#filter", Input)
        if self.opened is None:
            await self.action_quit()
        elif field.display or (self.grid is not None and self.grid.sheet.pattern):
            field.value = ""
            self.filter("")
            self.close_filter()
        else:
            self.go(self.now.widened())

    async def action_back(self) -> None:
        """Go back to what was selected before."""
        self.visit(self.history.back())

    def action_forth(self) -> None:
        """Go forward again."""
        self.visit(self.history.forth())

    def action_view(self) -> None:
        """Switch between wall time and host time."""
        self.go(self.now.seen(VIEWS[1 - VIEWS.index(self.now.view)]))

    def action_baseline(self) -> None:
        """Set the variants against the next of them."""
        opened = self.opened
        if opened is not None:
            self.set_baseline(opened.next_baseline())

    def set_baseline(self, name: str) -> None:
        """Set the variants against that one."""
        opened = self.opened
        if opened is not None and name != opened.report.baseline.name:
            self._background.ask(("baseline", name), lambda: opened.against(name), can_be_overtaken=False)

    def action_pane(self, number: int) -> None:
        """Go to the pane of that number."""
        if number < len(self.listed):
            self.go(self.now.at(self.listed[number].name))

    def action_turn(self, way: int) -> None:
        """Go to the next pane, or the one before, round and round."""
        names = [pane.name for pane in self.listed]
        at = names.index(self.now.pane) if self.now.pane in names else 0
        self.go(self.now.at(names[(at + way) % len(names)]))

    def action_timeline(self) -> None:
        """Go to the timeline; from there, to what encloses the event that is selected on it."""
        if self.now.pane != "timeline":
            self.go(self.now.at("timeline"))
        elif self.now.of("event") is not None:
            self.go(self.now.at("event"))

    def action_jump(self) -> None:
        """Choose a pane by a letter."""
        choices = [(key, pane.title, pane.name) for key, pane in zip(LETTERS, self.listed, strict=False)]
        self.push_screen(ChoiceScreen("Go to", choices), self._jumped)

    def _jumped(self, name: str | None) -> None:
        if name is not None:
            self.go(self.now.at(name))

    def action_filter(self) -> None:
        """Ask for the words that a row must hold."""
        field = self.query_one("#filter", Input)
        field.display = True
        field.value = self.grid.sheet.pattern if self.grid is not None else ""
        field.focus()

    def filter(self, pattern: str) -> None:
        """Show only the rows that hold these words."""
        grid = self._filtered or self.grid
        if grid is not None and grid.sheet.pattern != pattern:
            self._filtered = grid
            grid.change(grid.sheet.filtered(pattern))
            if self.view is not None:
                self.view.tell_rows()

    def close_filter(self) -> None:
        """Give the keys back to the table."""
        self.query_one("#filter", Input).display = False
        grid = self._filtered or self.grid
        if grid is not None:
            grid.focus()

    def on_input_changed(self, message: Input.Changed) -> None:
        """Filter as it is typed."""
        if message.input.display:
            self.filter(message.value)

    def on_input_submitted(self) -> None:
        """Keep the filter."""
        self.close_filter()

    def action_copy(self) -> None:
        """Copy the name, the row, or the table as it is on screen."""
        grid = self.grid
        if grid is None or not len(grid.sheet):
            return
        row = grid.sheet.row_in_full(grid.cursor)
        name = next((value for title, value in row if title in _NAMED), row[0][1])
        copied = min(len(grid.sheet), _COPIED)
        of = f"the first {copied:,} of {len(grid.sheet):,}" if copied < len(grid.sheet) else f"{copied:,}"
        table = [grid.sheet.titles, *grid.sheet.cells(0, copied)]
        choices = [
            ("n", f"name: {sanitize(name, 60)}", name.strip()),
            ("r", "row", "\t".join(f"{title}: {value.strip()}" for title, value in row)),
            ("t", f"table, {of} rows, with tabs", "\n".join("\t".join(each) for each in table)),
        ]
        self.push_screen(ChoiceScreen("Copy", choices), self._copied)

    def _copied(self, text: str | None) -> None:
        if text is not None:
            self.copy_to_clipboard(text)
            self.notify(f"Copied {len(text):,} letters.")

    def action_export(self) -> None:
        """Write what is on screen to a file in the current folder."""
        choices = [(key, text, name) for key, (name, text) in FORMATS.items()]
        self.push_screen(ChoiceScreen("Write what is on screen", choices), self._exported)

    def _exported(self, name: str | None) -> None:
        if name is not None:
            grid = self.grid
            said = write(self, name, self.now.pane, grid.sheet if grid is not None else None)
            self.notify(sanitize(said))

    def action_edit(self) -> None:
        """Open the line in the user's editor."""
        place, opened = self.place, self.opened
        if place is None or opened is None:
            return
        path = on_this_machine(opened, place.file)
        editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
        if path is None:
            self.notify(f"{sanitize(place.file)} is not on this machine.", severity="warning")
            return
        failed = ""
        try:
            with self.suspend():
                subprocess.run([*shlex.split(editor), f"+{place.line}", str(path)], check=False)
        except SuspendNotSupported:
            failed = "This terminal cannot be handed to an editor."
        except (OSError, ValueError) as error:
            failed = f"{editor}: {error}"
        self.refresh()
        if failed:
            self.notify(sanitize(failed), severity="error")

    def action_help(self) -> None:
        """Explain the pane, the widget that has the keys, the keys and the words."""
        about, keys, words = ["Nothing is open yet."], list[Binding](), dict[str, str]()
        title = "tracekit"
        if self.opened is not None and self.shown is not None:
            pane = self.pane_of(self.shown)
            title, about = pane.title, [pane.help]
            focused: Widget | None = self.focused
            if focused is not None and hasattr(focused, "HELP"):
                about.append(str(focused.HELP))
                keys = [each for each in type(focused).BINDINGS if isinstance(each, Binding)]
            for grid in self.view.grids if self.view is not None else ():
                words |= grid.sheet.meanings
                if grid.sheet.name == "buckets":
                    words |= {bucket.label: bucket.meaning for bucket in BUCKETS.values()}
        self.push_screen(HelpScreen(title, about, [*keys, *keys_for(len(self.listed))], words))

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """None of Textual's: the palette has this app's own."""
        return ()
