"""The events behind a finding: rows of the events table, for a face to show or jump to."""

import numpy as np

from tracekit.findings.finding import Evidence
from tracekit.intervals import Bools, Ints, Rows
from tracekit.profile import Profile

MOST = 5


def evidence(profile: Profile, rows: Ints | Rows, most: int = MOST) -> tuple[Evidence, ...]:
    """The longest of these events, the longest first, ties in order of time."""
    trace = profile.trace
    longest = np.lexsort((rows, -trace.dur_ns[rows]))[:most]
    chosen = np.asarray(rows, np.int64)[longest]
    steps = trace.steps.of(trace.ts_ns[chosen])
    return tuple(
        Evidence(
            event=row,
            step=trace.steps.number[step] if step >= 0 else None,
            name=trace.names[trace.name_codes[row]],
            start_ns=int(trace.ts_ns[row]),
            dur_ns=int(trace.dur_ns[row]),
        )
        for row, step in zip(chosen.tolist(), steps.tolist(), strict=True)
    )


def blamed_events(profile: Profile, chosen: Bools) -> Ints:
    """The events that some pieces of counted steps are blamed on; none where nothing was recorded meanwhile."""
    pieces = profile.attribution.pieces
    rows = np.unique(pieces.event[chosen & profile.counted[pieces.step]]).astype(np.int64)
    return rows[rows >= 0]
