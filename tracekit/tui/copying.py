"""Copying from a table: the name under the cursor, the row, or the table as it is on screen."""

from typing import Any

from textual.app import App

from tracekit.sanitize import sanitize
from tracekit.tui.model.sheet import Sheet
from tracekit.tui.screens.choice import ChoiceScreen

_ROWS = 1_000  # terminals reject much longer texts
_NAMED = {"name", "finding", "line", "module", "bucket", "call", "region", "inside of", "text"}  # titles of columns


def copy(app: App[Any], sheet: Sheet, cursor: int) -> None:
    """Ask what to copy to the clipboard, and copy it."""

    def chosen(text: str | None) -> None:
        if text is not None:
            app.copy_to_clipboard(text)
            app.notify(f"Copied {len(text):,} characters.")

    app.push_screen(ChoiceScreen("Copy", _choices(sheet, cursor)), chosen)


def _choices(sheet: Sheet, cursor: int) -> list[tuple[str, str, str]]:
    row = sheet.row_in_full(cursor)
    name = next((value for title, value in row if title in _NAMED), row[0][1])
    copied = min(len(sheet), _ROWS)
    of = f"the first {copied:,} of {len(sheet):,}" if copied < len(sheet) else f"{copied:,}"
    table = [sheet.titles, *sheet.cells(0, copied)]
    return [
        ("n", f"name: {sanitize(name, 60)}", name.strip()),
        ("r", "row", "\t".join(f"{title}: {value.strip()}" for title, value in row)),
        ("t", f"table, {of} rows, with tabs", "\n".join("\t".join(each) for each in table)),
    ]
