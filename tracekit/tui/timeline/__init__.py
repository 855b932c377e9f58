"""The timeline: variants one above the other, with every event at its time, at any zoom.

Only `widget` uses Textual: a `State` is what is on the screen, its methods are what the keys do, and `frame` draws it
as lines.
"""

from tracekit.tui.timeline.state import Event, Moment, Step, Stretch, Target

__all__ = ["Event", "Moment", "Step", "Stretch", "Target"]
