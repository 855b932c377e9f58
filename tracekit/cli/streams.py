"""The standard streams: stdout is data, stderr is for people."""

import os
import sys
from contextlib import suppress
from io import TextIOWrapper

from tracekit.errors import StandardOutputError


def open_streams() -> None:
    """Give every stream that was closed (`>&-`) a stand-in, and make none fail at a character that it cannot encode.

    Without, the next file to be opened would be taken for the stream.
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
    """Print a sentence on stderr; where that cannot be written either, it is lost."""
    with suppress(OSError):
        print(sentence, file=sys.stderr)


def write_out(content: str | bytes = "") -> None:
    """Write to stdout and flush it, so that a failure is reported here and not when Python exits."""
    try:
        if isinstance(content, bytes):
            sys.stdout.flush()
            sys.stdout.buffer.write(content)
        elif content:  # without a buffer, even an empty write fails on a full disk
            sys.stdout.write(content)
        sys.stdout.flush()
    except OSError as error:
        # What is left over has somewhere to go when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            raise
        raise StandardOutputError(error.strerror or str(error)) from None
