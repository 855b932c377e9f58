"""What happened: any Kineto trace, read into Arrow tables with exact nanoseconds."""

from tracekit.trace.health import Health
from tracekit.trace.model import Trace

__all__ = ["Health", "Trace"]
