"""Reading what was named: what is there already is looked at while the rest is read."""

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
    """Variants were read; `ticket` says whether that is all of them."""


class Arrivals:
    """What was named, how far reading it is, and why nothing came of it (`failure`). Posts `Read` to the app."""

    def __init__(self, app: App[Any], paths: list[Path], baseline: str | None, infer_steps: bool) -> None:
        self.paths, self.baseline, self.infer_steps = paths, baseline, infer_steps
        self.reading = Reading()
        self.is_reading = True
        self.failure: TracekitError | None = None
        self._app = app
        self._is_drawn = Event()

    def start(self) -> None:
        """In a thread of its own, so that keys are answered while more is read."""
        given = (self.paths, self.baseline, self.infer_steps, self.reading)
        Background(self._app, Read).ask(True, lambda: open_report(*given, self._some))

    def _some(self, opened: Opened) -> None:
        """Called by the thread that reads, which leaves the processor to the screen until that is drawn."""
        self._is_drawn.clear()
        self._app.post_message(Read(False, opened, None))
        self._is_drawn.wait(_PATIENCE_S)

    def drawn(self) -> None:
        """What was read is on screen: go on."""
        self._is_drawn.set()
