"""What is done one by one, where one operator would do: what would the host and the GPU be spared?"""

import numpy as np

from tracekit.engine.buckets import SLOW_HOST
from tracekit.intervals import Ints, Union
from tracekit.profile import Profile

TINY_NS = 5_000  # a shorter kernel is over before the next is set up: a single one for all takes hardly longer


def kernels_of(profile: Profile, spans: Union) -> tuple[Ints, Ints]:
    """The GPU activities that the driving threads submit in these spans, and in which span each."""
    trace = profile.trace
    activities, launches = trace.links.activities.astype(np.int64), trace.links.launches.astype(np.int64)
    called = trace.ts_ns[launches]
    span = np.searchsorted(spans.starts, called, side="right") - 1
    inside = (span >= 0) & np.isin(trace.track[launches], trace.threads.driving)
    inside[inside] = called[inside] < spans.ends[span[inside]]
    return activities[inside], span[inside]


def one_by_one(profile: Profile, spans: Union) -> Union:
    """The time in these spans in which the host keeps the GPU waiting, and from the first to the last kernel that is
    submitted in each, without kernels that have enough to do."""
    trace, pieces = profile.trace, profile.attribution.pieces
    activities, span = kernels_of(profile, spans)
    starts, ends = trace.ts_ns[activities], trace.events_at(activities).end_ns
    low, high = np.full(len(spans.starts), np.iinfo(np.int64).max), np.zeros(len(spans.starts), np.int64)
    np.minimum.at(low, span, starts)
    np.maximum.at(high, span, ends)
    large = ends - starts > TINY_NS
    running = Union.of(low, high).minus(Union.of(starts[large], ends[large]))
    return running.plus(spans.common(pieces.union(pieces.of(*SLOW_HOST))))
