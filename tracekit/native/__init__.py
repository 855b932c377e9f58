"""Loops and searches in C over rows. Without them, Python and NumPy do the same: a replay a fiftieth as fast, painting
a fifth, looking up rows a third. And, for Linux, the end of a watched step (`_steps`), which Python notes otherwise."""

try:
    from tracekit.native import _loops as _loops

    BUILT = True
except ImportError:
    BUILT = False
