"""The rooms: one tab each, in order. A new room is a file here and an entry in `all_rooms`."""

from tracekit.tui.rooms.analysis import AnalysisRoom
from tracekit.tui.rooms.overview import OverviewRoom
from tracekit.tui.rooms.room import Room
from tracekit.tui.view import View


def all_rooms(view: View) -> list[Room]:
    """The overview, then every analysis of the registry."""
    return [OverviewRoom(1), *(AnalysisRoom(number, asked) for number, asked in enumerate(view.asked, 2))]
