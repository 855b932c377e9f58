"""Reading the inputs: what has been read can be explored while the rest is still being read, in one background
thread that runs only the latest request.
"""

from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from threading import Event, Thread
from typing import Any

from textual.app import App
from textual.message import Message
from textual.message_pump import MessagePump

from tracekit.errors import TracekitError
from tracekit.findings.choice import Choice
from tracekit.tui.model.opened import OpenReport
from tracekit.tui.model.opening import Reading, open_report

_PATIENCE_S = 1.0


class Done(Message):
    """The result of some work, or the error that ended it. `ticket` says which work it was."""

    def __init__(self, ticket: object, result: Any, error: Exception | None) -> None:
        super().__init__()
        self.ticket, self.result, self.error = ticket, result, error


class Read(Done):
    """Variants were read; `ticket` says whether these are all of them."""


class Arrivals:
    """The inputs, how far they have been read, and why nothing could be opened (`failure`). Posts `Read` to the app."""

    def __init__(
        self, app: App[Any], paths: list[Path], baseline: str | None, infer_steps: bool, choice: Choice
    ) -> None:
        self.paths, self.baseline, self.infer_steps, self.choice = paths, baseline, infer_steps, choice
        self.reading = Reading()
        self.is_reading = True
        self.failure: TracekitError | None = None
        self._app = app
        self._is_drawn = Event()

    def start(self) -> None:
        """Read in a separate thread, so that the app responds to keys meanwhile."""
        arguments = (self.paths, self.baseline, self.infer_steps, self.reading)
        Background(self._app, Read).ask(True, lambda: open_report(*arguments, self._hand_over, choice=self.choice))

    def _hand_over(self, opened: OpenReport) -> None:
        """Hand over what has been read. The reading thread calls this and waits until the screen has been drawn."""
        self._is_drawn.clear()
        self._app.post_message(Read(False, opened, None))
        self._is_drawn.wait(_PATIENCE_S)

    def drawn(self) -> None:
        """Tell the reading thread that the screen shows what was read, so that it goes on."""
        self._is_drawn.set()


class Background:
    """Runs work in the order in which it is requested; skips work that a later request overtook before it began.

    Textual's workers are not used: quitting would wait for them, for as long as a trace takes to read.
    """

    def __init__(self, asker: MessagePump, message: type[Done] = Done) -> None:
        self._asker, self._message = asker, message
        self._queue: SimpleQueue[tuple[object, Callable[[], Any], bool]] = SimpleQueue()
        self._latest: object = None
        self._thread: Thread | None = None

    def ask(self, ticket: object, work: Callable[[], Any], can_be_overtaken: bool = True) -> None:
        """Do the work in the background, and post its result to the asker."""
        if self._thread is None:
            self._thread = Thread(target=self._run, daemon=True, name="tracekit-tui")
            self._thread.start()
        self._latest = ticket
        self._queue.put((ticket, work, can_be_overtaken))

    def _run(self) -> None:
        while True:
            ticket, work, can_be_overtaken = self._queue.get()
            if can_be_overtaken and ticket != self._latest:
                continue
            try:
                outcome = self._message(ticket, work(), None)
            except Exception as error:
                outcome = self._message(ticket, None, error)
            self._asker.post_message(outcome)
