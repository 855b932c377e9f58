"""Reports that can be shown to anyone: what is secret in their inputs is replaced right after it is read.

    inputs ──read──▶ Confidential ──stand-ins──▶ Trace, LinesFile, Run ──▶ the report and all of its faces

What is not known to be public is secret (`public`). Stand-ins are numbers (`stand_ins`) in the shape of what they stand
for (`names`, `places`, `prose`), because tracekit is to say the same of a trace with stand-ins as of the trace.
"""

from tracekit.confidential.inputs import Confidential

__all__ = ["Confidential"]
