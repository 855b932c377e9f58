"""What are the longest stretches in which the GPU idles, what does the host do meanwhile, and what ends them?"""

import numpy as np
import pyarrow as pa
from msgspec import Struct

from tracekit.analyses import Answer, Status, analysis, table
from tracekit.analyses.event_rows import line_columns
from tracekit.base.intervals import Ints
from tracekit.base.units import count, duration, many, percent
from tracekit.engine.attribution import Pieces
from tracekit.engine.buckets import BUCKETS, KEYS, ON_THE_GPU
from tracekit.profile import Profile
from tracekit.profile.where import LINE_COLUMNS
from tracekit.trace.rows import names_of_rows
from tracekit.trace.schema import column

_TITLE = "Longest gaps"
_LISTED = 10
_MAX_NAMED_GAPS = 5  # whose share of all idle time the sentence gives
_HARDLY = 0.001  # of the steps: the gaps that make up less are not told one by one
GAPS = pa.schema(
    [
        column("step", pa.int64(), "the N of the step that contains it", role="identity"),
        column("start_ns", pa.int64(), "start, on the trace's clock", "clock", role="plumbing"),
        column("gap_ns", pa.int64(), "how long no kernel and no copy ran", "ns", title="gap"),
        column("share", pa.float64(), "share of all idle time in the counted steps", "share"),
        column("mostly", pa.string(), "bucket that takes most of it"),
        column("mostly_ns", pa.int64(), "time in that bucket", "ns", title="of which"),
        column("event", pa.int64(), "row of the event that is to blame for most of it; null for none", role="plumbing"),
        column("host", pa.string(), "name of that event: what the host did meanwhile", role="name"),
        column("after", pa.string(), "kernel or copy that ended last before it", role="kernel"),
        column("before", pa.string(), "kernel or copy that ends it", role="kernel"),
        *LINE_COLUMNS,
    ]
)


class _Gaps(Struct, frozen=True):
    """Stretches of idle GPU in the counted steps: the first of their pieces, the one after their last, and when."""

    first: Ints
    last: Ints
    start: Ints
    end: Ints


@analysis("gaps", rank=24)
def answer(profile: Profile) -> Answer:
    """One row per gap, the longest first."""
    trace, mean = profile.trace, profile.means["wall"]
    if trace.device != "gpu":
        return _no_answer("This trace contains no GPU activity, so there are no gaps.", "absent")
    if mean is None:
        return _no_answer("Cannot be answered, because the wall time is unknown.", "unanswered")
    pieces = profile.attribution.pieces
    gaps = _gaps(profile, pieces)
    length = gaps.end - gaps.start
    total = int(length.sum())
    longest = np.argsort(-length, kind="stable")[:_LISTED]
    if not total:
        return _no_answer("The GPU never idles in a step.", "absent")
    largest = [_largest_part(pieces, int(gaps.first[k]), int(gaps.last[k])) for k in longest]
    blamed = np.array([event for _, _, event in largest], np.int64)
    after, before = _neighbours(profile, gaps.start[longest], gaps.end[longest])
    summary = table(
        GAPS,
        {
            "step": [trace.steps.number[step] for step in pieces.step[gaps.first[longest]].tolist()],
            "start_ns": gaps.start[longest],
            "gap_ns": length[longest],
            "share": length[longest] / total,
            "mostly": [BUCKETS[KEYS[bucket]].label for bucket, _, _ in largest],
            "mostly_ns": [ns for _, ns, _ in largest],
            "event": pa.array(blamed, mask=blamed < 0),
            "host": names_of_rows(trace, blamed),
            "after": names_of_rows(trace, after),
            "before": names_of_rows(trace, before),
            **line_columns(profile, blamed),
        },
    )
    steps = "the only step that the mean covers" if profile.counted_steps == 1 else "the steps that the means cover"
    listed, idle = length[longest][:_MAX_NAMED_GAPS], total / max(int(profile.answered["wall"].sum()), 1)
    if idle < _HARDLY * mean.step_ns:
        made_of = f", less than {percent(_HARDLY)} of the time"
    elif len(listed) == len(length):
        made_of = f", in {many(len(length), 'gap')}" + (
            f" of up to {duration(int(listed[0]))}" if len(length) > 1 else ""
        )
    else:
        made_of = (
            f"; the {count(len(listed))} longest of {count(len(length))} gaps make up "
            f"{percent(int(listed.sum()) / total)} of it, up to {duration(int(listed[0]))} each"
        )
    sentence = f"The GPU idles for {duration(total)} in {steps}{made_of}."
    return Answer("gaps", _TITLE, sentence, summary, worth=idle / mean.step_ns)


def _no_answer(sentence: str, status: Status) -> Answer:
    return Answer("gaps", _TITLE, sentence, GAPS.empty_table(), status=status)


def _gaps(profile: Profile, pieces: Pieces) -> _Gaps:
    """Runs of pieces that follow one another without GPU work, within one step or across two."""
    is_idle = ~pieces.of(*ON_THE_GPU) & profile.counted[pieces.step] & ~profile.unseen.covers(pieces.start)
    idle_pieces = np.flatnonzero(is_idle)
    joined = (idle_pieces[1:] == idle_pieces[:-1] + 1) & (pieces.start[idle_pieces[1:]] == pieces.end[idle_pieces[:-1]])
    opens = np.concatenate(([True], ~joined)) if len(idle_pieces) else np.zeros(0, bool)
    first = idle_pieces[opens]
    last = np.concatenate((idle_pieces[np.flatnonzero(opens)[1:] - 1], idle_pieces[-1:])) + 1
    return _Gaps(first, last, pieces.start[first], pieces.end[last - 1])


def _largest_part(pieces: Pieces, first: int, last: int) -> tuple[int, int, int]:
    """The bucket that takes most of a gap, how much it takes, and the event to blame for most of that; −1 for none."""
    buckets, events, dur = pieces.bucket[first:last], pieces.event[first:last], pieces.dur[first:last]
    by_bucket = np.bincount(buckets, dur)
    bucket = int(by_bucket.argmax())
    of_it = buckets == bucket
    rows, inverse = np.unique(events[of_it], return_inverse=True)
    return bucket, int(by_bucket[bucket]), int(rows[np.bincount(inverse.reshape(-1), dur[of_it]).argmax()])


def _neighbours(profile: Profile, starts: Ints, ends: Ints) -> tuple[Ints, Ints]:
    """The GPU activities that end last before each gap and start first after it; −1 where there is none."""
    trace = profile.trace
    rows = trace.where(lambda part: part.roles.gpu & part.lasting)
    events = trace.events_at(rows)
    begins, finishes = events.ts_ns, events.end_ns
    after, before = [], []
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        ended = np.flatnonzero(finishes <= start)
        after.append(int(rows[ended[finishes[ended].argmax()]]) if len(ended) else -1)
        later = int(np.searchsorted(begins, end))
        before.append(int(rows[later]) if later < len(rows) else -1)
    return np.array(after, np.int64), np.array(before, np.int64)
