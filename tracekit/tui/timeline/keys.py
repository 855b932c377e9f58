"""The keys of the timeline; the help is made of their tooltips."""

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
    Binding(
        "plus,equals_sign", "move('zoom', 2)", "Zoom", id="zoom-in", key_display="+ -", tooltip="Nearer and farther"
    ),
    Binding("minus", "move('zoom', 0.5)", id="zoom-out", show=False),
    Binding("f", "act('fit')", "Fit", id="fit", tooltip="The whole step; again: all that was recorded"),
    Binding("z", "act('near')", "Zoom to", id="near", tooltip="As near as shows what is selected, or the range"),
    Binding("enter", "enter", "Open", id="open", tooltip="More about what is selected"),
    Binding(
        "r", "act('range')", "Range", id="range", tooltip="Begin a range at the selected stretch; again: end it there"
    ),
    Binding(
        "comma", "move('alike', -1)", "Instance", id="alike-before", key_display=", .", tooltip="The same event before"
    ),
    Binding(
        "full_stop", "move('alike', 1)", id="alike-after", show=False, key_display=".", tooltip="The same event after"
    ),
    Binding("n", "move('step', 1)", "Step", id="step-after", key_display="n p", tooltip="Next and previous step"),
    Binding("p", "move('step', -1)", id="step-before", show=False),
    Binding("i", "move('gap', 1)", "Idle", id="gap", tooltip="Next gap of the GPU that can be seen; I: before"),
    Binding("I", "move('gap', -1)", id="gap-before", show=False),
    Binding("s", "move('sync', 1)", "Sync", id="sync", tooltip="Next sync; S: before"),
    Binding("S", "move('sync', -1)", id="sync-before", show=False),
    Binding("c", "move('compile', 1)", "Compile", id="compile", tooltip="Next compilation; C: before"),
    Binding("C", "move('compile', -1)", id="compile-before", show=False),
    Binding("l", "act('lock')", "Lock", id="lock", tooltip="Lock variants by time into the step, or by share of it"),
    Binding("escape", "act('clear')", id="clear", show=False, tooltip="Drop the range, then the selection"),
]
