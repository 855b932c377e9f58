"""A bare frame, on screen before anything slow is imported."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from tracekit.base.names import sanitize

_ENTER, _LEAVE = "\x1b[?1049h\x1b[2J\x1b[H", "\x1b[?1049l"  # the alternate screen, on which the app will draw


def show(paths: Sequence[Path]) -> None:
    """Say what is being opened, in the line where the app will say it."""
    width = os.get_terminal_size(sys.__stderr__.fileno() if sys.__stderr__ is not None else 2).columns
    names = sanitize("  ".join(path.name for path in paths), max(width - 14, 8))
    _write(f"{_ENTER}\x1b[1m tracekit \x1b[0m {names}\r\n\r\n  Reading {names} …")


def leave() -> None:
    """Restore the terminal's main screen, if the app failed before it could do so."""
    _write(_LEAVE)


def _write(text: str) -> None:
    if sys.__stderr__ is not None:  # Textual draws there, too
        sys.__stderr__.write(text)
        sys.__stderr__.flush()
