"""Reads many ranks with several processes on this machine, or with a Dask cluster.

    traces ──Readers.submit──▶ RankColumns of each, read where its file is ──open_ranks──▶ Subject

Only columns of totals and of communication come back (`tracekit.ranks`). One rank of each job is also opened here, for
everything in a report besides comparing ranks. `readers` provides the processes or the cluster, which are used alike.
"""

from tracekit.fleet.opening import open_ranks
from tracekit.fleet.readers import Readers, readers

__all__ = ["Readers", "open_ranks", "readers"]
