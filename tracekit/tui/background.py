"""Slow work beside the app, which answers keys meanwhile."""

from collections.abc import Callable
from threading import Thread

from textual.app import App
from textual.message import Message

from tracekit.tui.view_model import ViewModel


class Loaded(Message):
    """The view model has been made, or the error says why it could not be."""

    def __init__(self, model: ViewModel | None, error: Exception | None) -> None:
        super().__init__()
        self.model, self.error = model, error


def in_background(app: App[None], work: Callable[[], ViewModel]) -> None:
    """Post what comes of it as `Loaded`.

    Not a Textual worker: leaving would wait for that, for as long as a trace takes to read.
    """

    def run() -> None:
        try:
            loaded = Loaded(work(), None)
        except Exception as error:
            loaded = Loaded(None, error)
        app.post_message(loaded)

    Thread(target=run, daemon=True).start()
