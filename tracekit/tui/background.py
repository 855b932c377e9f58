"""Slow work in one background thread, which runs only the latest request, so that the app keeps responding to keys."""

from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from typing import Any

from textual.message import Message
from textual.message_pump import MessagePump


class Done(Message):
    """The result of some work, or the error that ended it. `ticket` says which work it was."""

    def __init__(self, ticket: object, result: Any, error: Exception | None) -> None:
        super().__init__()
        self.ticket, self.result, self.error = ticket, result, error


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
                done = self._message(ticket, work(), None)
            except Exception as error:
                done = self._message(ticket, None, error)
            self._asker.post_message(done)
