"""Several ranks of one job: their communication matched, who waits for whom, and why the late one is late.

    trace of each rank ──read_rank──▶ RankColumns ──collectives──▶ Collectives: waiting, lateness by bucket, clocks

The first arrow is a pure function of one file, and what it returns can be pickled: it runs wherever the trace is. The
second one needs the columns of all ranks, and nothing else of them.

Ranks trace on clocks of their own. A collective ends on all ranks at the same moment, which aligns the clocks
(`clocks`); what remains of the differences is the error of the alignment.
"""

from tracekit.ranks.collectives import Collectives, collectives
from tracekit.ranks.columns import RankColumns, rank_columns, read_rank

__all__ = ["Collectives", "RankColumns", "collectives", "rank_columns", "read_rank"]
