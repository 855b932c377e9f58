"""The standard streams: stdout is for data, stderr for people."""

import os
import sys
from contextlib import suppress
from io import TextIOWrapper

from tracekit.errors import StandardOutputError


def open_streams() -> None:
    """Replace every stream that was closed (`>&-`), and keep all from failing at a character that they cannot encode.

    Otherwise, the next file to be opened would take the place of the closed stream.
    """
    if sys.stdin is None:
        sys.stdin = open(os.open(os.devnull, os.O_WRONLY), encoding="utf-8")  # noqa: SIM115 - fails when read
    if sys.stdout is None:
        sys.stdout = open(os.open(os.devnull, os.O_RDONLY), "w", encoding="utf-8")  # noqa: SIM115 - when written
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - it is never read
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def tell(sentence: str) -> None:
    """Print a sentence on stderr; if that cannot be written either, it is lost."""
    with suppress(OSError):
        print(sentence, file=sys.stderr)


def write_out(content: str | bytes = "") -> None:
    """Write to stdout and flush it, so that a failure is reported here and not when Python exits."""
    try:
        if isinstance(content, bytes):
            sys.stdout.flush()
            sys.stdout.buffer.write(content)
        elif content:  # unbuffered, even an empty write fails on a full disk
            sys.stdout.write(content)
        sys.stdout.flush()
    except OSError as error:
        # The rest of the buffer needs a destination when Python exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            raise
        raise StandardOutputError(error.strerror or str(error)) from None
