"""The command palette: every action, pane, variant, finding, kernel, operator, line, step and theme by its name."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, cast

from rich.text import Text
from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content

from tracekit.base.names import sanitize
from tracekit.tui.keys import KEYS
from tracekit.tui.model.opened import OpenReport, has_gpu
from tracekit.tui.model.panes.findings import findings_sheet
from tracekit.tui.model.panes.names import to_name
from tracekit.tui.model.selection import Kind, Selection
from tracekit.vocabulary.kernel_names import short_kernel

if TYPE_CHECKING:
    from tracekit.tui.app import TracekitApp

_Command = tuple[str, str, Callable[[], object]]
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

    def _commands(self) -> Iterator[_Command]:
        app = cast("TracekitApp", self.app)
        for key in KEYS:
            if key.tooltip and key.action and key.id != "palette" and "(" not in key.action:
                about = f"{key.tooltip} ({key.key_display or key.key})"
                yield key.description or key.tooltip, about, partial(app.run_action, key.action)
        if app.opened is not None:
            yield from self._of_opened(app, app.opened)
        for theme in sorted(app.available_themes):
            yield f"Theme {theme}", "Colours of the screen", partial(setattr, app, "theme", theme)

    @staticmethod
    def _of_opened(app: "TracekitApp", opened: OpenReport) -> Iterator[_Command]:
        now = app.now
        for pane in app.navigation.listed:
            yield f"Go to {pane.title}", pane.help, partial(app.browser.go, now.at(pane.name))
        for name in opened.variants:
            label = sanitize(name, 60)
            narrowed = now.narrowed("variant", name, label)
            yield f"Variant {label}", "Only this variant and its baseline", partial(app.browser.go, narrowed)
            yield f"Baseline {label}", "Compare the other variants with it", partial(app.browser.set_baseline, name)
        findings = findings_sheet(opened, now)
        for index in range(len(findings)):
            cells = dict(findings.row_in_full(index))
            target = findings.destination(index)
            if isinstance(target, Selection):
                yield f"Finding {cells['finding']}", cells.get("variant", ""), partial(app.browser.go, target)
        yield from Commands._of_names(app, opened)
        numbers = sorted({number for profile in opened.report.profiles for number in profile.trace.steps.number})
        for number in numbers[:_STEPS]:
            yield f"Step {number}", "Narrow everything to it", partial(app.browser.go, now.to_steps(number, number))

    @staticmethod
    def _of_names(app: "TracekitApp", opened: OpenReport) -> Iterator[_Command]:
        """Kernels, operators and lines, which lead to where Enter on them does."""
        now = app.now
        behind = "kernels" if has_gpu(opened.report.profiles) else "instances"
        panes: dict[Kind, str] = {"kernel": "instances", "operator": behind}
        for kind, pane in panes.items():
            tables = opened.tables(f"{kind}s", opened.report.profiles).values()
            for name in dict.fromkeys(name for table in tables for name in table["name"].to_pylist() if name):
                label = short_kernel(name) if kind == "kernel" else name
                target = to_name(now, kind, name, pane)
                yield f"{kind.capitalize()} {sanitize(name, 200)}", sanitize(label, 80), partial(app.browser.go, target)
        lines = (line for variant in opened.owners for owner in variant.means.owners for line in owner.lines)
        for file, number in dict.fromkeys((line.file, line.line) for line in lines):
            target = now.to_line(file, number)
            yield f"Line {sanitize(file, 200)}:{number}", "Your source", partial(app.browser.go, target)
