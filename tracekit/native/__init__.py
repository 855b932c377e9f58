"""Loops and searches in C over rows. Without them, Python and NumPy do the same: a replay a fiftieth as fast, painting
a fifth, looking up rows a third. And what a watched training would wait for: the end of a step, for Linux (`_steps`),
and the level of steps (`_levels`); and which line of the user's runs (`_marks`)."""

try:
    from tracekit.native import _loops as _loops

    BUILT = True
except ImportError:
    BUILT = False
