"""HTA's analyses over our columns, without a second parse. They need the extra `hta`.

    profile of each rank ──frames──▶ HTA's data frames ──traces──▶ HTA's Trace ──▶ ColumnAnalysis ──results──▶ frames

HTA is Holistic Trace Analysis, by Meta: `traceinsight` today, `HolisticTraceAnalysis` before; both install the package
`hta`. Its faults are left as they are; docs/hta.md says where its numbers differ from ours, and why.
"""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

from tracekit.errors.asking import NeedsPackageError
from tracekit.profile import Profile

if TYPE_CHECKING:
    from tracekit.hta.traces import ColumnAnalysis


def trace_analysis(
    profile: Profile, *, rounded: bool = False, include_last_profiler_step: bool = True
) -> "ColumnAnalysis":
    """HTA's `TraceAnalysis` of a variant, all of its ranks. Raises NeedsPackageError.

    By default, times are exact and the last step counts. HTA's own defaults round to µs and leave out the last step.
    """
    needed()
    from tracekit.hta.traces import ColumnAnalysis, ColumnTrace

    main = profile.capture("steady")  # of which all figures of the profile are
    ranks = profile.per_rank or {main.rank if main is not None else 0: profile}
    traces = {rank: profile.trace for rank, profile in ranks.items()}
    return ColumnAnalysis(ColumnTrace(traces, rounded=rounded, include_last_profiler_step=include_last_profiler_step))


def needed() -> None:
    """Raise NeedsPackageError if HTA is not installed."""
    try:
        specification = find_spec("hta.trace_analysis")  # just `hta` could be any folder of that name
    except ModuleNotFoundError:
        specification = None
    if specification is None:
        raise NeedsPackageError("HTA", "traceinsight", "hta")


@contextmanager
def quietly() -> Iterator[None]:
    """A context in which HTA logs nothing, and pandas warns of nothing in HTA's code, neither of which concerns the
    user; its failures are exceptions or missing results."""
    logger = logging.getLogger("hta")
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
