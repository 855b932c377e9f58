"""The messages of a timeline to the widgets around it."""

from textual.message import Message

from tracekit.timeline import Index
from tracekit.tui.timeline.targets import Stretch


class Chosen(Message):
    """A stretch of a lane was selected, or `entered`.

    `row` is that of its event in the events table, −1 if it is no event; `category` is the key of its kind: a bucket,
    `region` or `idle`.
    """

    def __init__(self, stretch: Stretch, row: int, category: str, entered: bool = False) -> None:
        super().__init__()
        self.stretch, self.row, self.category, self.entered = stretch, row, category, entered


class Cleared(Message):
    """Nothing is selected any more."""


class RangeChosen(Message):
    """A range of time was chosen."""

    def __init__(self, stretch: Stretch) -> None:
        super().__init__()
        self.stretch = stretch


class Indexed(Message):
    """A variant has been indexed, or the error says why it could not be."""

    def __init__(self, variant: int, index: Index | None, error: Exception | None = None) -> None:
        super().__init__()
        self.variant, self.index, self.error = variant, index, error
