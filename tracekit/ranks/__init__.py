"""Several ranks of one job: their communication matched, who waits for whom, and why the late one is late.

    Profile with a capture for each rank ──calls_of──▶ Calls ──match──▶ Collectives ──blame──▶ lateness by bucket

Ranks trace on clocks of their own. A collective ends on all ranks at the same moment, which aligns the clocks
(`clocks`); what remains of the differences is the error of the alignment.
"""

from tracekit.ranks.collectives import Collective, Collectives, collectives

__all__ = ["Collective", "Collectives", "collectives"]
