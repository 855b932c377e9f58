"""Where panes are shown, one at a time; the timeline is preserved while others are, since indexing takes long."""

from collections.abc import Sequence

from textual.containers import Container
from textual.widget import MountError, Widget

from tracekit.profile import Profile
from tracekit.tui.model.content import Content, Lanes
from tracekit.tui.timeline import Target
from tracekit.tui.timeline.widget import Timeline
from tracekit.tui.widgets.pane_view import PaneView


class Stage(Container):
    """One widget shows all panes except timelines; each timeline has its own, which is preserved."""

    @property
    def pane(self) -> PaneView | None:
        """The pane on screen, unless it is a timeline."""
        return next((child for child in self.children if isinstance(child, PaneView) and child.display), None)

    async def show(self, content: Content, begin: tuple[int, int]) -> None:
        """Show an answer, unless the app is quitting: the screen then accepts no more widgets."""
        try:
            await self._show(content, begin)
        except MountError:
            if self.is_attached:
                raise

    async def _show(self, content: Content, begin: tuple[int, int]) -> None:
        lanes = next((piece for piece in content.pieces if isinstance(piece, Lanes)), None)
        if lanes is not None:
            await self._show_lanes(lanes)
            return
        pane = next((child for child in self.children if isinstance(child, PaneView)), None) or PaneView()
        await self.put(pane)
        await pane.show(content, begin)

    async def _show_lanes(self, lanes: Lanes) -> None:
        view = next((lanes_view for lanes_view in self.query(LanesView) if lanes_view.profiles == lanes.profiles), None)
        view = view if view is not None else LanesView(lanes)
        await self.put(view)
        view.go_to(lanes.target)
        self.screen.set_focus(view, scroll_visible=False)

    def forget_but(self, profiles: Sequence[Profile]) -> None:
        """Drop the timelines of other variants than these: more variants have arrived since they were made."""
        for view in self.query(LanesView):
            if not view.display and not all(
                any(view_profile is profile for profile in profiles) for view_profile in view.profiles
            ):
                view.remove()

    async def put(self, widget: Widget) -> None:
        """Show a widget in place of the present one."""
        for child in [*self.children]:
            child.display = child is widget
            if child is not widget and not isinstance(child, LanesView | PaneView):
                await child.remove()
        if widget not in self.children:
            await self.mount(widget)


class LanesView(Timeline):
    """The timeline of some variants. Esc drops the range, then what is selected on it, and only then widens."""

    HELP = (
        "Arrows move through time and lanes, + and - zoom, f fits the step, z zooms to the selection; , and . go to "
        "the previous and next event of the same name, n and p to the next and previous step, i, s and c to the next "
        "gap, sync and compilation; / searches events by name, then n and N go on and back; "
        "r begins and ends a range, to which the panes of kernels and operators are "
        "narrowed; l locks variants by time or by share of the step."
    )

    def __init__(self, lanes: Lanes) -> None:
        super().__init__(lanes.profiles)
        self.profiles: Sequence[Profile] = lanes.profiles
        self._last_target: Target | None = None

    def go_to(self, target: Target | None) -> None:
        """Show this target, unless it is the one shown last: then the timeline stays where the user has moved it."""
        if target is not None and target != self._last_target:
            self.show(target)
        self._last_target = target
