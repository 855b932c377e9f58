"""Reading the inputs: what has been read can be explored while the rest is still being read."""

from pathlib import Path
from threading import Event
from typing import Any

from textual.app import App

from tracekit.errors import TracekitError
from tracekit.tui.background import Background, Done
from tracekit.tui.model.opened import Opened
from tracekit.tui.model.opening import Reading, open_report

_PATIENCE_S = 1.0


class Read(Done):
    """Variants were read; `ticket` says whether these are all of them."""


class Arrivals:
    """The inputs, how far they have been read, and why nothing could be opened (`failure`). Posts `Read` to the app."""

    def __init__(self, app: App[Any], paths: list[Path], baseline: str | None, infer_steps: bool) -> None:
        self.paths, self.baseline, self.infer_steps = paths, baseline, infer_steps
        self.reading = Reading()
        self.is_reading = True
        self.failure: TracekitError | None = None
        self._app = app
        self._is_drawn = Event()

    def start(self) -> None:
        """Read in a separate thread, so that the app responds to keys meanwhile."""
        given = (self.paths, self.baseline, self.infer_steps, self.reading)
        Background(self._app, Read).ask(True, lambda: open_report(*given, self._some))

    def _some(self, opened: Opened) -> None:
        """Hand over what has been read. The reading thread calls this and waits until the screen has been drawn."""
        self._is_drawn.clear()
        self._app.post_message(Read(False, opened, None))
        self._is_drawn.wait(_PATIENCE_S)

    def drawn(self) -> None:
        """Tell the reading thread that the screen shows what was read, so that it goes on."""
        self._is_drawn.set()
