"""What a watch leaves on disk, and what it tells: the record of each step, which steps were slow, and why.

Nothing here needs torch or numpy: the watched process and those who read its record decide with the same code.
"""

from tracekit.watched.record import Cause, Facts, Flag, Minute, Record, Step

__all__ = ["Cause", "Facts", "Flag", "Minute", "Record", "Step"]
