"""What happened: any Kineto trace, read into Arrow tables with exact nanoseconds."""

from tracekit.trace.facts import Breach
from tracekit.trace.model import Trace

__all__ = ["Breach", "Trace"]
