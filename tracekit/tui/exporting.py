"""Handing on what is on screen: a name, a row, a picture, text or a table is copied or written to a file, and a
line is opened in the user's editor.
"""

import os
import shlex
import subprocess
from io import StringIO
from itertools import count
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text
from textual.app import App, SuspendNotSupported
from textual.strip import Strip

from tracekit.base.names import sanitize
from tracekit.errors import TracekitError
from tracekit.faces.shared.output_files import Overwriting, write_content
from tracekit.tui.model.sheet import Sheet
from tracekit.tui.screens import ChoiceScreen, FileNameScreen

_PICTURES = {"s": ("svg", "SVG, a picture of the screen"), "t": ("txt", "text, as it is on the screen")}
_TABLES = {
    "c": ("csv", "CSV, the table that has the cursor: all columns of the rows shown, times in ns"),
    "j": ("json", "JSON, the same"),
    "p": ("parquet", "Parquet, the same"),
}
_ROWS = 1_000  # terminals reject much longer texts
_NAME_TITLES = {"name", "finding", "line", "module", "bucket", "call", "region", "inside of", "text"}  # of columns


def export(app: App[Any], name: str, sheet: Sheet | None) -> None:
    """Ask for a format and for the name of the file, and write it."""

    def ask_for_path(kind: str | None) -> None:
        if kind is not None:
            names = (f"tracekit-{name}{'' if number == 1 else f'-{number}'}.{kind}" for number in count(1))
            free_name = next(path for path in names if not Path(path).exists())
            app.push_screen(FileNameScreen(free_name), lambda path: write_to(kind, path))

    def write_to(kind: str, path: str | None) -> None:
        if path:
            app.clear_notifications()  # which a picture would show
            app.call_after_refresh(lambda: app.notify(sanitize(_write(app, kind, Path(path).expanduser(), sheet))))

    formats = _PICTURES | (_TABLES if sheet is not None else {})
    choices = [(key, text, kind) for key, (kind, text) in formats.items()]
    app.push_screen(ChoiceScreen("Write what is on screen", choices), ask_for_path)


def _write(app: App[Any], kind: str, path: Path, sheet: Sheet | None) -> str:
    """Write a file where there is none, and say so, or say what went wrong."""
    if path.exists():
        return f"{path}: is there already. Nothing was written."
    try:
        content: str | bytes
        if kind == "svg":
            content = picture(app)
        elif kind == "txt" or sheet is None:
            content = "".join(screen_text(app).splitlines(keepends=True)[:-1])
        else:
            from tracekit.faces.shared.one_table import drawn  # imports what would delay the start

            content = drawn(sheet.shown, kind)
        write_content(path, content, Overwriting())
    except TracekitError as error:
        return str(error)
    return f"Wrote {path.resolve()}"


def picture(app: App[Any]) -> str:
    """The screen as SVG, without the line of keys, which is the last."""
    lines = _lines(app)[:-1]
    console = Console(
        width=app.size.width, height=len(lines), file=StringIO(), force_terminal=True, color_system="truecolor",
        record=True, legacy_windows=False, safe_box=False,
    )  # fmt: skip
    for line in lines:
        console.print(Text.assemble(*((segment.text, segment.style or "") for segment in line)), no_wrap=True)
    return console.export_svg(title=app.title)


def screen_text(app: App[Any]) -> str:
    """The screen, line by line."""
    return "\n".join("".join(segment.text for segment in line).rstrip() for line in _lines(app)) + "\n"


def _lines(app: App[Any]) -> list[Strip]:
    width, height = app.size
    strips = app.screen._compositor.render_strips()  # Textual has no other way to its text
    return [strip.crop(0, width) for strip in strips[:height]]


def copy(app: App[Any], sheet: Sheet, cursor: int) -> None:
    """Ask what to copy to the clipboard, and copy it."""

    def copy_text(text: str | None) -> None:
        if text is not None:
            app.copy_to_clipboard(text)
            app.notify(f"Copied {len(text):,} characters.")

    row = sheet.row_in_full(cursor)
    name = next((value for title, value in row if title in _NAME_TITLES), row[0][1])
    copied = min(len(sheet), _ROWS)
    extent = f"the first {copied:,} of {len(sheet):,}" if copied < len(sheet) else f"{copied:,}"
    table = [sheet.titles, *sheet.cells(0, copied)]
    choices = [
        ("n", f"name: {sanitize(name, 60)}", name.strip()),
        ("r", "row", "\t".join(f"{title}: {value.strip()}" for title, value in row)),
        ("t", f"table, {extent} rows, with tabs", "\n".join("\t".join(cells) for cells in table)),
    ]
    app.push_screen(ChoiceScreen("Copy", choices), copy_text)


def edit(app: App[Any], path: Path, line: int) -> str:
    """Open the editor and wait until the user closes it. Returns what went wrong, or nothing."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        with app.suspend():
            subprocess.run([*shlex.split(editor), f"+{line}", os.path.abspath(path)], check=False)
    except SuspendNotSupported:
        return "This terminal cannot be handed to an editor."
    except (OSError, ValueError) as error:
        return f"{editor}: {error}"
    finally:
        app.refresh()
    return ""
