"""Writing what is on screen: a picture, text, or the table under the cursor."""

from itertools import count
from pathlib import Path
from typing import Any

from textual.app import App

from tracekit.sanitize import sanitize
from tracekit.tui.model.sheet import Sheet
from tracekit.tui.screens.choice import ChoiceScreen

_FORMATS = {
    "s": ("svg", "SVG, a picture of the screen"),
    "t": ("txt", "text, as it is on the screen"),
    "p": ("parquet", "Parquet, the table that has the cursor: all columns of the rows shown"),
}


def export(app: App[Any], name: str, sheet: Sheet | None) -> None:
    """Ask for a format, and write it."""

    def chosen(kind: str | None) -> None:
        if kind is not None:
            app.notify(sanitize(_write(app, kind, name, sheet)))

    choices = [(key, text, kind) for key, (kind, text) in _FORMATS.items()]
    app.push_screen(ChoiceScreen("Write what is on screen", choices), chosen)


def _write(app: App[Any], kind: str, name: str, sheet: Sheet | None) -> str:
    """Write a file into the current folder, beside any that is there, and say so, or say what went wrong."""
    if kind == "parquet" and sheet is None:
        return "There is no table on screen."
    path = _free(name, kind)
    try:
        if kind == "parquet" and sheet is not None:
            import pyarrow.parquet as pq  # here, so that its tenth of a second does not delay the start

            pq.write_table(sheet.shown, path)
        else:
            path.write_text(app.export_screenshot() if kind == "svg" else screen_text(app), "utf-8")
    except OSError as error:
        return f"{path}: {error.strerror or error}"
    return f"Wrote {path.resolve()}"


def screen_text(app: App[Any]) -> str:
    """The screen, line by line."""
    width, height = app.size
    strips = app.screen._compositor.render_strips()  # Textual has no other way to its text
    lines = ["".join(segment.text for segment in strip).rstrip() for strip in strips]
    return "\n".join(line[:width] for line in lines[:height]) + "\n"


def _free(name: str, kind: str) -> Path:
    """A name that no file has yet."""
    names = (Path(f"tracekit-{name}{'' if number == 1 else f'-{number}'}.{kind}") for number in count(1))
    return next(path for path in names if not path.exists())
