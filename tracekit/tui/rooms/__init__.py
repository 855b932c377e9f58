"""The rooms: one tab each, in order. A new room is a file here and an entry in `all_rooms`."""

from tracekit.tui.rooms.chapter import ChapterRoom
from tracekit.tui.rooms.overview import OverviewRoom
from tracekit.tui.rooms.room import Room
from tracekit.tui.view_model import ViewModel


def all_rooms(model: ViewModel) -> list[Room]:
    """The overview, then every other chapter of the report."""
    return [OverviewRoom(1), *(ChapterRoom(number, chapter) for number, chapter in enumerate(model.chapters, 2))]
