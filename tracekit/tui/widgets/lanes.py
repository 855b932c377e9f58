"""The timeline as a pane, which is preserved while other panes are shown: indexing takes as long as reading."""

from collections.abc import Sequence

from tracekit.profile import Profile
from tracekit.tui.model.content import Lanes
from tracekit.tui.timeline import Target
from tracekit.tui.timeline.widget import Timeline


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
        self._shown: Target | None = None

    def go_to(self, target: Target | None) -> None:
        """Show this target, unless it is the one shown last: then the timeline stays where the user has moved it."""
        if target is not None and target != self._shown:
            self.show(target)
        self._shown = target
