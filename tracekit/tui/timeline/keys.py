"""The keys of the timeline; the help is made from their tooltips."""

from textual.binding import Binding

KEYS = [
    Binding(
        "left", "move('pan', -0.125)", "Pan", id="pan-left", show=False, key_display="← →", tooltip="Move through time"
    ),
    Binding("right", "move('pan', 0.125)", id="pan-right", show=False),
    Binding(
        "up", "move('lane', -1)", "Lane", id="lane-up", show=False, key_display="↑ ↓", tooltip="Go to another lane"
    ),
    Binding("down", "move('lane', 1)", id="lane-down", show=False),
    Binding(
        "shift+left",
        "move('beside', -1)",
        id="beside-left",
        show=False,
        key_display="⇧← →",
        tooltip="Go along the lane",
    ),
    Binding("shift+right", "move('beside', 1)", id="beside-right", show=False),
    Binding("plus,equals_sign", "move('zoom', 2)", "Zoom", id="zoom-in", key_display="+ -", tooltip="Zoom in and out"),
    Binding("minus", "move('zoom', 0.5)", id="zoom-out", show=False),
    Binding("f", "act('fit')", "Fit", id="fit", tooltip="Fit the whole step; press again for the whole recording"),
    Binding("z", "act('near')", "Zoom to", id="near", tooltip="Zoom to the selection, or to the range"),
    Binding("enter", "enter", "Open", key_display="⏎", id="open", tooltip="More about what is selected"),
    Binding(
        "r", "act('range')", "Range", id="range", tooltip="Begin a range at the selection; press again to end it there"
    ),
    Binding(
        "comma",
        "move('alike', -1)",
        "Instance",
        id="alike-before",
        key_display=", .",
        tooltip="Previous and next event of the same name",
    ),
    Binding(
        "full_stop",
        "move('alike', 1)",
        id="alike-after",
        show=False,
    ),
    Binding("slash", "app.filter", "Search", key_display="/", id="search", tooltip="Search events by parts of names"),
    Binding(
        "n",
        "move('onward', 1)",
        "Step",
        id="step-after",
        key_display="n p",
        tooltip="Next and previous step; after a search, n and N go to the next and previous event that it found",
    ),
    Binding("N", "move('onward', -1)", id="search-before", show=False),
    Binding("p", "move('step', -1)", id="step-before", show=False),
    Binding("i", "move('gap', 1)", "Idle", id="gap", tooltip="Next visible gap of the GPU; I goes to the previous one"),
    Binding("I", "move('gap', -1)", id="gap-before", show=False),
    Binding("G", "act('longest')", id="longest-gap", show=False, tooltip="The longest gap of the GPU on the screen"),
    Binding("s", "move('sync', 1)", "Sync", id="sync", tooltip="Next sync; with Alt, the previous one"),
    Binding("alt+s", "move('sync', -1)", id="sync-before", show=False),
    Binding("c", "move('compile', 1)", "Compile", id="compile", tooltip="Next compilation; with Alt, the previous one"),
    Binding("alt+c", "move('compile', -1)", id="compile-before", show=False),
    Binding("l", "act('lock')", "Lock", id="lock", tooltip="Lock variants by time into the step, or by share of it"),
    Binding(
        "escape",
        "act('clear')",
        id="clear",
        show=False,
        key_display="esc",
        tooltip="Drop the range, then the selection",
    ),
]
