"""Where the time went: every nanosecond of every step in exactly one bucket."""

from tracekit.engine.attribution import Attribution, attribute

__all__ = ["Attribution", "attribute"]
