"""Loops in C over rows. Without it, Python does the same: a replay a fiftieth as fast, painting a fifth."""

try:
    from tracekit.native import _loops as _loops

    BUILT = True
except ImportError:
    BUILT = False
