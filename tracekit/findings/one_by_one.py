"""What is done one by one, where one operator would do: what would the host and the GPU be spared?"""

import numpy as np

from tracekit.engine.buckets import SLOW_HOST
from tracekit.intervals import Ints, Union
from tracekit.profile import Profile

BETWEEN_NS = 10_000  # a longer gap is not the usual price of a kernel
TINY_NS = 5_000  # a shorter kernel is over before the next is set up: a single one for all takes hardly longer


def kernels_of(profile: Profile, spans: Union) -> tuple[Ints, Ints]:
    """The GPU activities that the driving threads submit in these spans, in order of their starts, and in which span
    each."""
    trace = profile.trace
    activities, launches = trace.links.activities.astype(np.int64), trace.links.launches.astype(np.int64)
    called = trace.ts_ns[launches]
    span = np.searchsorted(spans.starts, called, side="right") - 1
    inside = (span >= 0) & np.isin(trace.track[launches], trace.threads.driving)
    inside[inside] = called[inside] < spans.ends[span[inside]]
    activities, span = activities[inside], span[inside]
    order = np.argsort(trace.ts_ns[activities], kind="stable")
    return activities[order], span[order]


def one_by_one(profile: Profile, spans: Union) -> tuple[Union, Ints]:
    """The time in these spans in which the host keeps the GPU waiting; that of the tiny kernels that are submitted in
    them; and the usual gaps between those. And these kernels, which a single one would replace."""
    trace, pieces = profile.trace, profile.attribution.pieces
    activities, span = kernels_of(profile, spans)
    events = trace.events_at(activities)
    tiny = events.end_ns - events.ts_ns <= TINY_NS
    follows = (span[1:] == span[:-1]) & (events.ts_ns[1:] - events.end_ns[:-1] < BETWEEN_NS)
    running = Union.of(
        np.concatenate((events.ts_ns[tiny], events.end_ns[:-1][follows])),
        np.concatenate((events.end_ns[tiny], events.ts_ns[1:][follows])),
    )
    return running.plus(spans.common(pieces.union(pieces.of(*SLOW_HOST)))), activities[tiny]
