"""The timeline: variants one above the other, every event in its place, as near or as far as one likes.

All but `widget`, `messages` and `keys` is without Textual: a `State` is what is on the screen, its methods are what
the keys do, and `rendering` draws it as lines.
"""

from tracekit.tui.timeline.targets import Event, Step, Stretch, Target

__all__ = ["Event", "Step", "Stretch", "Target"]
