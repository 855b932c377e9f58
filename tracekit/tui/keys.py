"""The keys: each has an id and a tooltip that says what it does; the help is made from the tooltips."""

from dataclasses import replace

from textual.binding import Binding

from tracekit.tui.model.panes import FIXED

NEED_CONTENT = {
    "view",
    "pane",
    "turn",
    "timeline",
    "filter",
    "copy",
    "export",
    "jump",
    "back",
    "forth",
    "baseline",
    "edit",
    "explain",
}

_LEAVE = [
    Binding("q", "quit", "Quit", id="quit", tooltip="Quit; Ctrl-C does the same"),
    Binding("ctrl+c", "quit", id="interrupt", show=False, priority=True, system=True),
]
_WIDEN = Binding(
    "escape",
    "widen",
    "Widen",
    key_display="esc",
    id="widen",
    tooltip="Undo the last narrowing; quit while nothing has been read yet",
)
_FILTER = Binding(
    "slash",
    "filter",
    "Filter",
    key_display="/",
    id="filter",
    tooltip="Show only the rows that contain the words you type",
)
_DIGITS = [
    Binding("1", "pane('1')", id="pane-1", show=False, key_display="1–9 0", tooltip="Go to the pane with that number"),
    *(Binding(digit, f"pane('{digit}')", id=f"pane-{digit}", show=False) for digit in "234567890"),
]
_LETTERS = [
    Binding(
        pane.key,
        f"pane('{pane.key}')",
        id=f"to-{pane.name}",
        show=False,
        key_display=" ".join(fixed.key for fixed in FIXED),
        tooltip="Go to the pane with that letter" * (pane is FIXED[0]),  # one line of the help for all of them
    )
    for pane in FIXED
]
_BEFORE = Binding(
    "[", "turn(-1)", id="previous", show=False, key_display="[ ]", tooltip="Go to the previous or next pane"
)
_AFTER = Binding("]", "turn(1)", id="next", show=False)

KEYS = [
    *_LEAVE,
    _WIDEN,
    Binding("alt+left", "back", "Back", id="back", show=False, key_display="alt ← →", tooltip="Go back and forward"),
    Binding("alt+right", "forth", id="forth", show=False),
    _FILTER,
    Binding("question_mark", "help", "Help", key_display="?", id="help", tooltip="Explain the keys and words"),
    Binding(
        "t",
        "timeline",
        "Timeline",
        id="timeline",
        tooltip="Show the row on the timeline: its gap, or its longest event; press again to see what encloses that",
    ),
    Binding(
        "w",
        "view",
        "Wall/host",
        id="view",
        tooltip="Switch between the wall time of a step and what the host does meanwhile",
    ),
    Binding("b", "baseline", "Baseline", id="baseline", tooltip="Make the next variant the baseline"),
    Binding("m", "explain", "Meaning", id="explain", show=False, tooltip="Explain what the finding or bucket means"),
    Binding("e", "edit", "Editor", id="edit", tooltip="Open the line in $EDITOR"),
    Binding("y", "copy", "Copy", id="copy", tooltip="Copy name, row or table to the clipboard (OSC 52)"),
    Binding(
        "x",
        "export",
        "Export",
        id="export",
        tooltip="Write what is on screen: a picture, or the table as CSV, JSON or Parquet",
    ),
    Binding("g", "jump", "Go", id="jump", tooltip="Go to any pane by its key"),
    Binding(
        "ctrl+p",
        "command_palette",
        "Palette",
        key_display="^p",
        id="palette",
        tooltip="Find any pane, variant, step or action by name",
    ),
    *_LETTERS,
    *_DIGITS,
    _BEFORE,
    _AFTER,
    # Textual handles this key; it is listed here for the help.
    Binding("tab", "", id="tab", show=False, key_display="tab", tooltip="Go to the next table of a pane"),
]

# A study has pages in place of panes, and nothing to widen except a filter.
STUDY_KEYS = [
    *_LEAVE,
    _FILTER,
    replace(_WIDEN, description="All rows", tooltip="Show all rows again"),
    _BEFORE,
    replace(_AFTER, description="Next page", key_display="[ ]", show=True),
    *_DIGITS,
]


def keys_for(panes: int) -> list[Binding]:
    """The keys as the help lists them, with only as many digits as there are panes without a letter."""
    digits = "1" if panes < 2 else f"1–{min(panes, 9)}" + (" 0" if panes > 9 else "")
    return [replace(key, key_display=digits) if key.id == "pane-1" else key for key in KEYS]
