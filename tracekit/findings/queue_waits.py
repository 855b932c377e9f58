"""When does work that was queued not start, although the GPU idles? Between queued kernels there is always a gap of a
few µs: the GPU's own pace. A wait is longer than any submission.
"""

import numpy as np
from msgspec import Struct

from tracekit.base.intervals import Bools, Ints
from tracekit.engine.wall import SUBMISSION_NS
from tracekit.profile import Profile
from tracekit.trace.rows import BEFORE


class QueueWaits(Struct, frozen=True):
    """The waits of the counted steps; one entry each, in order of time."""

    piece_mask: Bools  # the pieces that are such a wait
    start: Ints  # ns
    end: Ints
    before: Ints  # row of the GPU activity that ended last before it; −1 for none
    after: Ints  # row of the activity that starts at its end; −1 where the step ends first
    step_ns: float  # how long they last per counted step


def queue_waits(profile: Profile) -> QueueWaits:
    """The gaps that last too long for the GPU's own pace, without those in which work may not have been recorded."""
    pieces = profile.attribution.pieces
    is_wait = pieces.of("gpu_gap") & (pieces.dur >= SUBMISSION_NS) & profile.counted[pieces.step]
    is_wait &= ~profile.unseen.covers(pieces.start)
    start, end = pieces.start[is_wait], pieces.end[is_wait]
    before, after = _neighbours(profile, start, end) if len(start) else (np.zeros(0, np.int64),) * 2
    return QueueWaits(is_wait, start, end, before, after, float((end - start).sum()) / profile.counted_steps)


def _neighbours(profile: Profile, start: Ints, end: Ints) -> tuple[Ints, Ints]:
    trace = profile.trace
    rows = trace.where(lambda part: part.roles.gpu & part.lasting)
    events = trace.events_at(rows)
    order = np.argsort(events.end_ns, kind="stable")
    ended = np.searchsorted(events.end_ns[order], start, side="right") - 1
    before = np.where(ended >= 0, rows[order[np.maximum(ended, 0)]], -1)
    begun = np.minimum(np.searchsorted(events.ts_ns, end), len(rows) - 1)
    after = np.where(events.ts_ns[begun] == end, rows[begun], -1)
    return before.astype(np.int64), after.astype(np.int64)


def first_launch(profile: Profile, rows: Ints) -> Ints:
    """When the call that submitted each activity began, ns; `BEFORE` for an activity of −1, or without a known call."""
    calls = np.full(len(rows), -1, np.int64)
    calls[rows >= 0] = profile.trace.links.launch(rows[rows >= 0])
    return np.where(calls >= 0, profile.trace.ts_ns[np.maximum(calls, 0)], BEFORE)
