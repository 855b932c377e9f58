"""Where panes are shown, one at a time."""

from collections.abc import Sequence

from textual.containers import Container
from textual.widget import Widget

from tracekit.profile import Profile
from tracekit.tui.model.content import Content, Lanes
from tracekit.tui.widgets.lanes import LanesView
from tracekit.tui.widgets.pane_view import PaneView


class Stage(Container):
    """Panes are made anew for each answer; timelines are kept."""

    @property
    def pane(self) -> PaneView | None:
        """The pane on screen, where it is none of lanes."""
        return next((each for each in self.children if isinstance(each, PaneView)), None)

    async def show(self, content: Content, begin: tuple[int, int]) -> None:
        """Show an answer."""
        lanes = next((piece for piece in content.pieces if isinstance(piece, Lanes)), None)
        if lanes is None:
            await self.put(PaneView(content, begin))
            return
        view = next((each for each in self.query(LanesView) if each.profiles == lanes.profiles), None)
        await self.put(view if view is not None else LanesView(lanes))
        for each in self.query(LanesView):
            if each.display:
                each.go_to(lanes.target)
                each.focus()

    def forget_but(self, profiles: Sequence[Profile]) -> None:
        """Drop the timelines of variants that are no longer these: others arrived since."""
        for each in self.query(LanesView):
            if not each.display and not all(any(one is other for other in profiles) for one in each.profiles):
                each.remove()

    async def put(self, widget: Widget) -> None:
        """Show a widget in place of what is shown."""
        with self.app.batch_update():
            for each in [*self.children]:
                each.display = each is widget
                if each is not widget and not isinstance(each, LanesView):
                    await each.remove()
            if widget not in self.children:
                await self.mount(widget)
