"""The command palette: every action, pane, variant, step, finding and theme by its name."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, cast

from textual.command import DiscoveryHit, Hit, Hits, Provider

from tracekit.sanitize import sanitize
from tracekit.tui.keys import KEYS
from tracekit.tui.model.findings import findings_sheet
from tracekit.tui.model.selection import Selection

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
        """The commands that match the query."""
        matcher = self.matcher(query)
        for title, about, act in self._commands():
            score = matcher.match(title)
            if score > 0:
                yield Hit(score, matcher.highlight(title), act, help=about)

    def _commands(self) -> Iterator[_Command]:
        app = cast("TracekitApp", self.app)
        for key in KEYS:
            if key.tooltip and key.action and key.id != "palette" and "(" not in key.action:
                yield (
                    f"{key.description or key.tooltip}",
                    f"{key.tooltip} ({key.key_display or key.key})",
                    partial(app.run_action, key.action),
                )
        if app.opened is not None:
            yield from self._of_opened(app)
        for theme in sorted(app.available_themes):
            yield f"Theme {theme}", "Colours of the screen", partial(setattr, app, "theme", theme)

    @staticmethod
    def _of_opened(app: "TracekitApp") -> Iterator[_Command]:
        opened, now = app.opened, app.now
        assert opened is not None
        for pane in app.navigation.listed:
            yield f"Go to {pane.title}", pane.help, partial(app.browser.go, now.at(pane.name))
        for name in opened.variants:
            shown = sanitize(name, 60)
            yield (
                f"Variant {shown}",
                "Only this variant and its baseline",
                partial(app.browser.go, now.narrowed("variant", name, shown)),
            )
            yield f"Baseline {shown}", "Compare the other variants with it", partial(app.browser.set_baseline, name)
        findings = findings_sheet(opened, now)
        for index in range(len(findings)):
            said = dict(findings.row_in_full(index))
            target = findings.destination(index)
            if isinstance(target, Selection):
                yield f"Finding {said['finding']}", said.get("variant", ""), partial(app.browser.go, target)
        numbers = sorted({number for profile in opened.report.profiles for number in profile.trace.steps.number})
        for number in numbers[:_STEPS]:
            selection = now.narrowed("steps", (number, number), f"step {number}")
            yield f"Step {number}", "Narrow everything to it", partial(app.browser.go, selection)
