"""A training is watched from inside: each step's time and what happened in it, always, at a cost of microseconds.

What is seen goes to the record (`tracekit.watched`). A slow step makes the profiler trace the next ones.
"""

from tracekit.watching.loop import Watch, watch

__all__ = ["Watch", "watch"]
