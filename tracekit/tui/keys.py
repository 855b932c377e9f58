"""The keys: every one has an id and says in its tooltip what it does; the help is made of these."""

from textual.binding import Binding

NEED_A_MODEL = {"view", "room", "turn"}

KEYS = [
    Binding("q", "quit", "Quit", id="quit", tooltip="Leave; so does Ctrl-C"),
    Binding("ctrl+c", "quit", id="interrupt", show=False, priority=True, system=True),
    Binding("question_mark", "help", "Help", key_display="?", id="help", tooltip="What keys and words mean"),
    Binding("w", "view", "Wall/host", id="view", tooltip="Wall time of a step, or what the host does meanwhile"),
    Binding("b", "baseline", "Baseline", id="baseline", tooltip="Set the variants against the next of them"),
    Binding("1", "room(1)", "Tab", key_display="1–9", id="room-1", tooltip="Go to the tab of that number"),
    *(Binding(str(number), f"room({number})", id=f"room-{number}", show=False) for number in range(2, 10)),
    Binding(
        "left",
        "turn(-1)",
        id="left",
        show=False,
        key_display="← →",
        tooltip="Scroll a wide table, at its edge turn tabs",
    ),
    Binding("right", "turn(1)", id="right", show=False),
    Binding("[", "turn(-1)", id="previous", show=False, key_display="[ ]", tooltip="Turn tabs"),
    Binding("]", "turn(1)", id="next", show=False),
    # These are Textual's own; named here for the help.
    Binding("up", "", id="up", show=False, key_display="↑ ↓", tooltip="Move through the tables and the page"),
    Binding("tab", "", id="tab", show=False, key_display="tab", tooltip="Go to the next table, or to the tabs"),
]
