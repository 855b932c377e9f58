"""The first room: the sentence, the variants as bars on one scale, the table, the steps, and what to know."""

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Static

from tracekit.engine.buckets import BUCKETS
from tracekit.tui.breakdown import Breakdown
from tracekit.tui.columns import fitting
from tracekit.tui.paint import Bars, Pulses
from tracekit.tui.rooms.room import Room, text
from tracekit.tui.row_table import Page, RowTable
from tracekit.tui.view_model import Remark, ViewModel


class OverviewRoom(Room):
    """How long a step takes, where its time goes, and what differs from the baseline."""

    HELP = (
        "How long a step takes and where its time goes. The bars share one scale; their parts stand in the order of "
        "the table, labelled where there is room, else by the table's letters. Δ is the difference from the baseline, "
        "95 % the interval it lies in; ~ marks a difference within noise. In the line of steps, C is one that compiles."
    )

    def __init__(self, number: int) -> None:
        super().__init__(number, "Overview")
        self._numbers: Breakdown | None = None

    def compose(self) -> ComposeResult:
        """First what matters most; the rest stands beside it, or below where the screen is narrow."""
        with Page():
            with Vertical(classes="main"):
                yield text("", "sentences")
                yield text("", "view title")
                yield Bars()
                yield RowTable(classes="buckets")
                yield text("", "meaning")
            with Vertical(classes="aside"):
                yield text("Steps", "title")
                yield Pulses()
                yield text("", "facts")

    def show(self, model: ViewModel, view: str) -> None:
        """Draw the wall time or the host time."""
        overview = model.overview
        self._numbers = numbers = overview.breakdowns[view]
        unit = f" ({numbers.unit})" if numbers.unit else ""
        self.query_one(".sentences", Static).update("\n".join(overview.sentences))
        self.query_one(".view", Static).update(f"{numbers.title}{unit}")
        self.query_one(".facts", Static).update(_remarks(overview.notes, overview.remarks))
        self.query_one(Bars).show(numbers)
        self.query_one(Pulses).show(overview.pulses[view])
        self._fill()

    def on_resize(self) -> None:
        """A wider screen has room for longer headings."""
        self._fill()

    def on_data_table_row_highlighted(self, event: RowTable.RowHighlighted) -> None:
        """Say what the bucket under the cursor means."""
        if self._numbers is not None and event.cursor_row < len(self._numbers.lines):
            line = self._numbers.lines[event.cursor_row]
            self.query_one(".meaning", Static).update(f"{line.label}: {line.meaning}")

    def explained(self) -> list[tuple[str, str]]:
        """Every bucket, whether it holds time here or not."""
        return [(bucket.label, bucket.meaning) for bucket in BUCKETS.values()]

    def _fill(self) -> None:
        table, numbers = self.query_one(RowTable), self._numbers
        cursor = table.cursor_row
        table.clear(columns=True)
        table.display = numbers is not None and bool(numbers.lines)
        if numbers is None or not numbers.lines:
            return
        columns = fitting(numbers, self.query_one(".main").size.width)
        for head, *_ in columns:
            table.add_column(head)
        for cells in zip(*(cells for _, *cells in columns), strict=True):
            table.add_row(*cells)
        table.move_cursor(row=cursor)


def _remarks(notes: list[Remark], remarks: list[Remark]) -> Text:
    written = Text()
    for title, entries in (("What to know", notes), ("What this rests on", remarks)):
        if entries:
            written.append(f"{title}\n", "bold underline")
            for entry in entries:
                written.append(f"{entry.label}: " if entry.label else "", "bold").append(f"{entry.text}\n")
            written.append("\n")
    written.rstrip()
    return written
