"""Reading what was named: what is there already is looked at while the rest is read."""

from pathlib import Path
from threading import Event

from textual.app import App
from textual.widgets import Static

from tracekit.errors import TracekitError
from tracekit.sanitize import sanitize
from tracekit.tui.background import Background, Done
from tracekit.tui.model.opened import Opened
from tracekit.tui.model.opening import Reading, open_report
from tracekit.tui.widgets.stage import Stage

_PATIENCE_S = 1.0


class Read(Done):
    """Variants were read; `ticket` says whether that is all of them."""


class Arriving(App[None]):
    """What was opened so far, and why nothing was (`failure`)."""

    def __init__(self, paths: list[Path], baseline: str | None = None, infer_steps: bool = False) -> None:
        super().__init__()
        self._paths, self._baseline, self._infer_steps = paths, baseline, infer_steps
        self._reading = Reading()
        self.is_reading = True
        self.is_seen = Event()
        self.opened: Opened | None = None
        self.failure: TracekitError | None = None

    def start_reading(self) -> None:
        """In a thread of its own, so that keys are answered while more is read."""
        given = (self._paths, self._baseline, self._infer_steps, self._reading)
        reader = Background(self, Read)
        reader.ask(True, lambda: open_report(*given, self._some))

    def _some(self, opened: Opened) -> None:
        """Called by the thread that reads, which leaves the processor to the screen until that is drawn."""
        self.is_seen.clear()
        self.post_message(Read(False, opened, None))
        self.is_seen.wait(_PATIENCE_S)

    async def on_read(self, message: Read) -> None:
        """Show it, or why there is nothing to show."""
        self.is_reading = not message.ticket
        if isinstance(message.error, TracekitError):
            said = sanitize(str(message.error))
            if self.opened is None:
                self.failure = message.error
                failure = Static(f"{said}\n\nPress q to leave.", id="failure", markup=False)
                await self.query_one(Stage).put(failure)
            else:
                self.notify(said, severity="error")
        elif message.error is not None:
            raise message.error
        else:
            self.become(message.result)

    def become(self, opened: Opened) -> None:
        """Show what was opened."""
        raise NotImplementedError

    @property
    def opened_names(self) -> list[str]:
        """What the user named, and what it turned out to be."""
        names = [path.name for path in self._paths]
        return [*names, self.opened.about] if self.opened is not None and self.opened.about else names
