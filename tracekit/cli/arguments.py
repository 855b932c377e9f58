"""What verbs share of the command line: the inputs, and the types of options."""

import argparse
import sys
from pathlib import Path


def add_inputs(parser: argparse.ArgumentParser) -> None:
    """What is read, and whether the cache may be asked."""
    parser.add_argument(
        "inputs",
        nargs="+",
        type=Path,
        metavar="INPUT",
        help="a trace, a folder of them, the run.json of a capture, an address (s3://…), or - for standard input",
    )
    parser.add_argument("--no-cache", action="store_true", help="read every trace anew, and keep nothing of it")


def rows(text: str) -> int:
    """A number of rows, or more than any table has."""
    if text == "all":
        return sys.maxsize
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of rows: give 0 or more, or all")
    return int(text)


def names(text: str) -> tuple[str, ...]:
    """Names, separated by commas."""
    return tuple(name for name in (part.strip() for part in text.split(",")) if name)


def pair(text: str) -> tuple[str, str]:
    """KEY=VALUE."""
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise argparse.ArgumentTypeError(f"{text!r} is not a parameter: give KEY=VALUE")
    return key, value


def positive(text: str) -> int:
    """A count of at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a count: give 1 or more")
    return int(text)
