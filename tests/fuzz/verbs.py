"""Runs a verb of tracekit on hostile input, and checks how it ends and what it wrote: with its own errors, one sentence
each, and with nothing in any format that takes effect where it is shown.
"""

import csv
import json
import re
import shutil
from contextlib import redirect_stderr, redirect_stdout, suppress
from html.parser import HTMLParser
from io import StringIO
from pathlib import Path
from typing import Any

from tracekit.cli import main

# Control characters except line ends and tabs, what reorders text, and what hides in it.
CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
ENDS = (0, 1, 3)
_TEXTS = (".text", ".markdown", ".html", ".latex", ".csv", ".xml", ".json", ".svg")
_MOST_FIELD = 1 << 25  # characters of a cell


class UnsafeOutputError(AssertionError):
    """Output that takes effect where it is shown, or a message that is not one."""


def run(*arguments: str | Path, output: Path | None = None) -> int:
    """Run a verb, with its output at a path if one is given. Returns the exit code; raises what tracekit should not
    have let out, and UnsafeOutputError."""
    said, printed = StringIO(), StringIO()
    given = [str(argument) for argument in arguments]
    if output is not None:
        given += ["-o", str(output)]
    try:
        with redirect_stdout(printed), redirect_stderr(said):
            code = main(given)
    except SystemExit as end:
        raise UnsafeOutputError(f"wrong usage: {end.code}: {said.getvalue()}") from None
    if code not in ENDS:
        raise UnsafeOutputError(f"exit code {code}")
    _check_text("stderr", said.getvalue())
    _check_text("stdout", printed.getvalue())
    if code == 1 and not any(line.startswith("tracekit: ") for line in said.getvalue().splitlines()):
        raise UnsafeOutputError(f"a failure without a sentence: {said.getvalue()!r}")
    if output is not None:
        for path in [output] if output.is_file() else output.rglob("*"):
            if path.suffix in _TEXTS:
                check(path)
        with suppress(NotADirectoryError, FileNotFoundError):
            shutil.rmtree(output)
        output.unlink(missing_ok=True)
    return code


def check(path: Path) -> None:
    """Raises UnsafeOutputError if something in a file that tracekit wrote takes effect."""
    text = path.read_text(encoding="utf-8")
    match path.suffix:
        case ".json":
            json.loads(text, parse_constant=_refused)
        case ".html":
            _Page().feed(text)
        case ".csv":
            csv.field_size_limit(_MOST_FIELD)
            for row in csv.reader(StringIO(text)):
                for cell in row:
                    if cell[:1] in ("=", "+", "@", "|", "%", "\t") or (cell[:1] == "-" and not _is_number(cell)):
                        raise UnsafeOutputError(f"{path.name}: {cell[:80]!r} is a formula")
        case ".markdown":
            if found := re.search(r"(?<!\\)<(?:script|img|a|iframe)\b|\]\((?!https?:)[a-z]+:", text, re.IGNORECASE):
                raise UnsafeOutputError(f"{path.name}: {found[0]!r}")
        case ".latex":
            if found := re.search(r"\\(?:input|include|write|openout|csname)\b", text):
                raise UnsafeOutputError(f"{path.name}: {found[0]!r}")
    _check_text(path.name, text)


def _check_text(name: str, text: str) -> None:
    if found := CONTROLS.search(text):
        start = max(found.start() - 40, 0)
        raise UnsafeOutputError(f"{name}: {text[start : found.end() + 40]!r}")
    text.encode()  # a surrogate is no text


def _refused(constant: str) -> None:
    raise UnsafeOutputError(f"{constant} is not JSON")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


class _Page(HTMLParser):
    """A page of which no name became an element or an attribute."""

    _scripts = 0

    def handle_starttag(self, tag: str, attributes: Any) -> None:
        self._scripts += tag == "script"
        if self._scripts > 1 or tag in ("img", "iframe", "object", "embed", "form", "base", "link"):
            raise UnsafeOutputError(f"<{tag}> in the page")
        for name, value in attributes:
            if name.startswith("on") or (name in ("href", "src") and not str(value).startswith(("#", "data:"))):
                raise UnsafeOutputError(f"<{tag} {name}={value!r}> in the page")
