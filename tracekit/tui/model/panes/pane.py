"""What a pane is: a question, with the help that explains its answer."""

from collections.abc import Callable

from msgspec import Struct

from tracekit.tui.model.content import Content
from tracekit.tui.model.opened import Opened
from tracekit.tui.model.selection import Selection


class Pane(Struct, frozen=True):
    """`title` is the text of its chip. `query` answers for a selection, which may take as long as reading a trace."""

    name: str
    title: str
    help: str
    query: Callable[[Opened, Selection], Content]
    applies: Callable[[Opened], bool] = lambda opened: True
    is_listed: bool = True  # if not, only Enter leads there
    key: str = ""  # that leads there, the same in every report; a pane without one gets a digit
    chapters: frozenset[str] = frozenset()  # those of the report that it shows; they get no separate pane
