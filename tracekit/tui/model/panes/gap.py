"""A gap of the GPU in words: when it is, and what each thread of the host does in it, at which line of the user's."""

from collections import Counter
from collections.abc import Iterator

import numpy as np

from tracekit.base.intervals import Ints
from tracekit.base.names import sanitize
from tracekit.base.units import duration, percent
from tracekit.engine.buckets import BUCKETS, KEYS
from tracekit.profile import Profile
from tracekit.timeline.categories import HOST, Kinds
from tracekit.tui.model.panes.instances import About, place_of, track_names

_PARTS, _THREADS = 3, 3  # that are named
_NAME = 60


def about_gap(profile: Profile, start_ns: int, end_ns: int) -> About:
    """What happened between two moments on the trace's clock in which the GPU was idle."""
    trace, length = profile.trace, end_ns - start_ns
    pieces = profile.attribution.pieces
    piece = int(np.searchsorted(pieces.start, start_ns, side="right")) - 1  # the steps of the wall time, not the host's
    step = int(pieces.step[piece]) if piece >= 0 and start_ns < pieces.end[piece] else -1
    timing = (
        f"step {trace.steps.number[step]}, {duration(start_ns - int(trace.steps.begin[step]))} after its work began"
        if step >= 0
        else "in no step"
    )
    lines, place = [f"GPU idle for {duration(length)}", f"{profile.name}: {timing}"], None
    for bucket, dur, event in _parts(profile, start_ns, end_ns)[:_PARTS]:
        name = f", most in {trace.names[trace.name_codes[event]]}" if event >= 0 else ""
        line = place_of(profile, event) if event >= 0 else None
        location = f" at {line.file}:{line.line}" if line is not None else ""
        lines.append(f"{percent(dur / length)} {BUCKETS[bucket].label}{sanitize(name, _NAME)}{location}")
        place = place or line
    lines += [
        f"meanwhile on {thread}: {sanitize(name, _NAME)}" for thread, name in _busy_threads(profile, start_ns, end_ns)
    ]
    return About(tuple(map(sanitize, lines)), place)


def _parts(profile: Profile, start_ns: int, end_ns: int) -> list[tuple[str, int, int]]:
    """The buckets of the wall time: each with its ns and the event most to blame (−1: none), the longest first."""
    pieces = profile.attribution.pieces
    low, high = np.maximum(pieces.start, start_ns), np.minimum(pieces.end, end_ns)
    by_bucket: dict[str, Counter[int]] = {}
    for piece in np.flatnonzero(low < high).tolist():
        blamed = by_bucket.setdefault(KEYS[pieces.bucket[piece]], Counter())
        blamed[int(pieces.event[piece])] += int(high[piece] - low[piece])
    parts = [(bucket, blamed.total(), blamed.most_common(1)[0][0]) for bucket, blamed in by_bucket.items()]
    return sorted(parts, key=lambda part: -part[1])


def _busy_threads(profile: Profile, start_ns: int, end_ns: int) -> Iterator[tuple[str, str]]:
    """For other threads than the main one, the event that takes most of the gap, the busiest threads first."""
    trace = profile.trace
    rows: Ints = np.flatnonzero((trace.ts_ns < end_ns) & (trace.ts_ns + trace.dur_ns > start_ns))
    rows = rows[(Kinds.of(trace).lanes[rows] == HOST) & (trace.track[rows] != trace.threads.main)]
    overlap_ns = np.minimum(trace.ts_ns[rows] + trace.dur_ns[rows], end_ns) - np.maximum(trace.ts_ns[rows], start_ns)
    names, described_tracks = track_names(trace), set[int]()
    for index in np.argsort(-overlap_ns, kind="stable").tolist():
        track = int(trace.track[rows[index]])
        if track not in described_tracks and len(described_tracks) < _THREADS:
            described_tracks.add(track)
            name = trace.names[trace.name_codes[rows[index]]]
            yield names[track].as_py(), f"{name}, {duration(int(overlap_ns[index]))}"
