"""The sweep of a replay in C. Without it, Python does the same, a fiftieth as fast."""

try:
    from tracekit.engine.native import _sweep as _sweep

    BUILT = True
except ImportError:
    BUILT = False
