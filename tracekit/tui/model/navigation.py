"""Where the user is: what was opened, what of it is selected, and which answer is on screen."""

from tracekit.base.names import short
from tracekit.tui.model.content import Code, Content, Pane, Place, place_in
from tracekit.tui.model.opened import OpenReport
from tracekit.tui.model.panes import all_panes
from tracekit.tui.model.panes.instances import place_of, to_event
from tracekit.tui.model.panes.overview import VIEWS
from tracekit.tui.model.panes.owners import code_at
from tracekit.tui.model.selection import HOME, NO_LINE, History, Selection
from tracekit.tui.model.sheet import Sheet
from tracekit.tui.timeline import Stretch

Cursor = tuple[int, int]  # a table of a pane, and a row of that table
_ROWS = 1_000_000  # of all remembered answers together, at most


class Navigation:
    """The history of selections. A pane answers each of them; `shown` is the one whose answer is on screen."""

    def __init__(self) -> None:
        self.opened: OpenReport | None = None
        self.panes: list[Pane] = []
        self.history = History()
        self.shown: Selection | None = None
        self.first_pane = HOME  # the pane to begin with
        self._cursors: dict[Selection, Cursor] = {}
        self._codes: dict[tuple[object, ...], Code | None] = {}
        self._answers: dict[Selection, Content] = {}

    @property
    def now(self) -> Selection:
        """What is selected."""
        return self.history.now

    @property
    def is_shown(self) -> bool:
        """Whether the answer to the selection is on screen."""
        return self.opened is not None and self.shown == self.now

    @property
    def pane(self) -> Pane:
        """The pane of the present selection."""
        return self.pane_of(self.now)

    def pane_of(self, selection: Selection) -> Pane:
        """The pane that a selection is shown in."""
        return next(pane for pane in self.panes if pane.name == selection.pane)

    @property
    def listed(self) -> list[Pane]:
        """The panes that have a chip."""
        return [pane for pane in self.panes if pane.is_listed]

    @property
    def chips(self) -> list[tuple[str, Pane]]:
        """The panes that have a chip, with the keys that lead there: letters, or digits as long as there are any."""
        digits = iter("1234567890")
        return [(pane.key or next(digits, ""), pane) for pane in self.listed]

    @property
    def keys(self) -> dict[str, Pane]:
        """The panes to which keys lead."""
        return {key: pane for key, pane in self.chips if key}

    def beside(self, way: int) -> Selection:
        """The same selection in the next or the previous listed pane, wrapping around at the ends."""
        names = [pane.name for pane in self.listed]
        position = names.index(self.now.pane) if self.now.pane in names else 0
        return self.now.at(names[(position + way) % len(names)])

    def open(self, opened: OpenReport) -> bool:
        """Show this from now on, with the same selection if it still exists; False if no pane needs to be queried."""
        before, self.opened, self.panes = self.opened, opened, all_panes(opened)
        if before is opened:  # it is the same object: every question has been answered meanwhile
            return False
        self._codes.clear()
        self._answers.clear()
        self.shown = None
        names = {pane.name for pane in self.panes}
        if before is None or not {*before.variants} <= {*opened.variants} or self.now.pane not in names:
            # The first variants to arrive, or later ones that gave others new names, which the history does not know.
            answered = any(profile.means["wall"] is not None for profile in opened.report.profiles)
            pane = self.first_pane if self.first_pane in names else HOME
            self.history = History(Selection(pane, view=VIEWS[0] if answered else VIEWS[1]))
        return True

    def visit(self, history: History) -> bool:
        """Go to the present entry of this history; False if that is where the user is already."""
        if self.opened is None or history == self.history:
            return False
        self.history = history
        return True

    def point_at(self, variant: str, row: int, stretch: Stretch) -> None:
        """Select an event of the timeline, or none (−1). It replaces the previous one, as it changes with every key.

        A selected moment stays while the stretch contains it.
        """
        if self.opened is None or self.now.of("event") == (variant, row):
            return
        selection = self.now.without("event")
        if (moment := self.now.of("moment")) is not None:
            name, at_ns = moment
            is_inside = name == variant and stretch.start_ns <= at_ns < stretch.end_ns
            selection = selection if is_inside else selection.without("moment")
        if row >= 0:
            selection = to_event(selection, self.opened.profile(variant), row)
        self.history = self.history.replaced(selection)
        self.shown = self.now

    def point_at_nothing(self) -> None:
        """Forget the event or the moment that was selected on the timeline."""
        self.history = self.history.replaced(self.now.without("event", "moment"))
        self.shown = self.now

    @property
    def answer(self) -> Content | None:
        """The answer to the selection, if it was asked for before and is still remembered."""
        return self._answers.get(self.now)

    def answered(self, content: Content) -> None:
        """Note that the answer to the selection is on screen; of earlier answers, the latest are remembered.

        Source files are read again, as they may be edited meanwhile.
        """
        self.shown = self.now
        self._answers.pop(self.now, None)
        if not any(isinstance(piece, Code) for piece in content.pieces):
            self._answers[self.now] = content
        rows = {key: sum(sheet.rows.num_rows for sheet in answer.sheets) for key, answer in self._answers.items()}
        while len(rows) > 1 and sum(rows.values()) > _ROWS:
            oldest = next(iter(rows))
            del rows[oldest], self._answers[oldest]

    def remember(self, cursor: Cursor) -> None:
        """Remember where the cursor was in the answer on screen, for when the user comes back."""
        if self.shown is not None:
            self._cursors[self.shown] = cursor

    def begin(self, content: Content) -> Cursor:
        """Where the cursor begins in the answer to the selection."""
        return self._cursors.get(self.now, content.begin)

    def place(self, sheet: Sheet | None, index: int) -> Place | None:
        """The line that the row at this position names, or else that of the selection."""
        place = None
        if sheet is not None and 0 <= index < len(sheet):
            place = place_in(sheet, sheet.row_at(index))
        if place is not None or self.opened is None:
            return place
        if (line := self.now.of("line")) is not None and line != NO_LINE:
            return Place(*line)
        event = self.now.of("event")
        return place_of(self.opened.profile(event[0]), event[1]) if event is not None else None

    def code_at(self, place: Place) -> Code | None:
        """The file around a line, with the costs of its lines in the selected steps."""
        key = place.file, self.now.view, self.now.of("steps")
        if key not in self._codes:
            self._codes[key] = code_at(self.opened, place, self.now) if self.opened is not None else None
        return self._codes[key]

    @property
    def path(self) -> list[str]:
        """The narrowings in words; without any, the title of a pane that only Enter leads to."""
        labels = [facet.label for facet in self.now.facets]
        return [*labels, self.pane.title] if not self.pane.is_listed and not labels else labels

    def whose_time(self, width: int) -> str:
        """Which view is shown, and compared with which variant, for a screen of that width."""
        if self.opened is None:
            return ""
        names = self.opened.variants
        if len(names) < 2:
            return f"{self.now.view} time"
        baseline = names.index(self.opened.report.baseline.name)
        return f"{self.now.view} time, against {short(names, max(width // 8, 8))[baseline]}"
