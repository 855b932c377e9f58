"""The timeline as a pane: it stays alive while others are shown, because its index takes as long as reading."""

from collections.abc import Sequence

from tracekit.profile import Profile
from tracekit.tui.model.content import Lanes
from tracekit.tui.timeline import Target
from tracekit.tui.timeline.widget import Timeline


class LanesView(Timeline):
    """The timeline of some variants. Esc widens, except where there is a range to drop."""

    HELP = (
        "Arrows move through time and lanes, + and - zoom, f fits the step, z goes near; , and . go to the same event "
        "before and after, n and p to the next step and the one before, i s c to where the GPU idles next, to the next "
        "sync and the next compilation; r begins and ends a range, whose kernels Enter on the pane of kernels then "
        "shows; l locks variants by time or by share."
    )

    def __init__(self, lanes: Lanes) -> None:
        super().__init__(lanes.profiles)
        self.profiles: Sequence[Profile] = lanes.profiles
        self._shown: Target | None = None

    def go_to(self, target: Target | None) -> None:
        """Show that, unless it is what was shown last: then it stays where the keys have led."""
        if target is not None and target != self._shown:
            self.show(target)
        self._shown = target

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool:
        """Only a range is dropped here."""
        if (action, parameters) == ("act", ("clear",)):
            return self.state is not None and (self.state.range, self.state.extended) != (None, None)
        return True
