"""Several ranks of one job: their communication matched, who waits for whom, and why the late one is late.

    trace of each rank ──read_rank──▶ RankColumns ──collectives──▶ Collectives: waiting, lateness by bucket, clocks

The first arrow is a pure function of one file whose result can be pickled, so it runs wherever the trace is. The second
one needs the columns of all ranks, and nothing else.

Each rank's trace has its own clock. A collective ends on all ranks at the same moment, which allows the clocks to be
aligned (`collectives`); the remaining differences are the error of the alignment.
"""

from tracekit.ranks.collectives import Collectives, collectives
from tracekit.ranks.columns import RankColumns, rank_columns, read_rank

__all__ = ["Collectives", "RankColumns", "collectives", "rank_columns", "read_rank"]
