"""What happened: any Kineto trace, read into Arrow tables with exact nanoseconds."""

from tracekit.trace.health import Limitation
from tracekit.trace.model import Trace

__all__ = ["Limitation", "Trace"]
