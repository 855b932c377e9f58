"""Slow work beside the app, which keeps answering keys: one thread, which runs only the latest request."""

from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from typing import Any

from textual.message import Message
from textual.message_pump import MessagePump


class Done(Message):
    """What came of some work, or the error that it ended in. `ticket` says which work it was."""

    def __init__(self, ticket: object, result: Any, error: Exception | None) -> None:
        super().__init__()
        self.ticket, self.result, self.error = ticket, result, error


class Background:
    """Runs work in the order in which it is given; work that was overtaken before it began is left out.

    Not Textual's workers: leaving would wait for these, for as long as a trace takes to read.
    """

    def __init__(self, asker: MessagePump, message: type[Done] = Done) -> None:
        self._asker, self._message = asker, message
        self._queue: SimpleQueue[tuple[object, Callable[[], Any], bool]] = SimpleQueue()
        self._latest: object = None
        self._thread: Thread | None = None

    def ask(self, ticket: object, work: Callable[[], Any], can_be_overtaken: bool = True) -> None:
        """Post a message to the asker with what comes of it."""
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
