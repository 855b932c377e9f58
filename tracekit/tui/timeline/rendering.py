"""The whole widget, line by line: the picture, remarks such as what is still being indexed, and the footer."""

from collections.abc import Sequence

from tracekit.names import short
from tracekit.tui.timeline import footer
from tracekit.tui.timeline.canvas import Inkwell, Line
from tracekit.tui.timeline.frame import Drawing, Frame, draw
from tracekit.tui.timeline.state import State


def rendered(state: State | None, remarks: Sequence[str], width: int, height: int, inkwell: Inkwell) -> Frame:
    """As many lines as the widget is high; without a state, only the remarks."""
    blank = Line.filled(" ", inkwell.plain(inkwell.palette.muted), width, inkwell)
    drawing = Drawing(width, height - footer.height(height) - len(remarks), inkwell)
    frame, below = Frame(drawing), []
    if state is not None:
        names = short([index.profile.name for index in state.view.variants], drawing.gutter - 1)
        frame = draw(state, names, drawing)
        below = footer.draw(state, width, height, inkwell)
    for remark in remarks:
        line = Line.filled(" ", inkwell.plain(inkwell.palette.muted), width, inkwell)
        line.write(remark, 1, width - 2, inkwell.plain(inkwell.palette.foreground))
        frame.add(line.runs())
    del frame.lines[max(height - len(below), 0) :]
    while len(frame.lines) < height - len(below):
        frame.add(blank.runs())
    for runs in below:
        frame.add(runs)
    return frame
