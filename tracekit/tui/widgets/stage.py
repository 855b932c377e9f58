"""Where panes are shown, one at a time."""

from collections.abc import Sequence

from textual.containers import Container
from textual.widget import MountError, Widget

from tracekit.profile import Profile
from tracekit.tui.model.content import Content, Lanes
from tracekit.tui.widgets.lanes import LanesView
from tracekit.tui.widgets.pane_view import PaneView


class Stage(Container):
    """One widget shows all panes except timelines; each timeline has its own, which is preserved."""

    @property
    def pane(self) -> PaneView | None:
        """The pane on screen, unless it is a timeline."""
        return next((each for each in self.children if isinstance(each, PaneView) and each.display), None)

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
        pane = next((each for each in self.children if isinstance(each, PaneView)), None) or PaneView()
        await self.put(pane)
        await pane.show(content, begin)

    async def _show_lanes(self, lanes: Lanes) -> None:
        view = next((each for each in self.query(LanesView) if each.profiles == lanes.profiles), None)
        view = view if view is not None else LanesView(lanes)
        await self.put(view)
        view.go_to(lanes.target)
        self.screen.set_focus(view, scroll_visible=False)

    def forget_but(self, profiles: Sequence[Profile]) -> None:
        """Drop the timelines of other variants than these: more variants have arrived since they were made."""
        for each in self.query(LanesView):
            if not each.display and not all(any(one is other for other in profiles) for one in each.profiles):
                each.remove()

    async def put(self, widget: Widget) -> None:
        """Show a widget in place of the present one."""
        for each in [*self.children]:
            each.display = each is widget
            if each is not widget and not isinstance(each, LanesView | PaneView):
                await each.remove()
        if widget not in self.children:
            await self.mount(widget)
