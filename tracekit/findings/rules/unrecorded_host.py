"""Does the GPU idle while nothing was recorded of what the host does?"""

from collections.abc import Iterator

import numpy as np

from tracekit.base.intervals import Bools, Ints, distinct
from tracekit.base.units import duration
from tracekit.findings import Finding, evidence, rule
from tracekit.findings.culprits import step_ns_of
from tracekit.findings.holes import LEAST_NS
from tracekit.findings.verdict import mostly_unknown
from tracekit.profile import Profile
from tracekit.trace.facts.coverage import device_side_missing
from tracekit.trace.facts.laws.sides import has_operators

_PROFILER = "https://docs.pytorch.org/docs/stable/profiler.html"


@rule("unrecorded_host")
def unrecorded_host(profile: Profile) -> Iterator[Finding]:
    """`idle_unexplained`: where the trace says nothing of the host, nobody can tell what it does."""
    mean, pieces = profile.means["wall"], profile.attribution.pieces
    if mean is None or not mean.parts.get("unrecorded") or device_side_missing(profile.trace) is not None:
        return
    is_claimed = pieces.of("unrecorded") & ~between_calls(profile) & ~profile.unseen.covers(pieces.start)
    is_counted = is_claimed & profile.counted[pieces.step]
    longest_ns = int(pieces.dur[is_counted].max(initial=0))
    if not longest_ns:
        return
    yield Finding(
        "idle_unexplained",
        "The GPU idles, and nothing was recorded meanwhile"
        if profile.trace.device == "gpu"
        else "Nothing was recorded for a while",
        why=f"What the host does then is unknown: {duration(step_ns_of(profile, is_claimed))} a step, up to "
        f"{duration(longest_ns)} at a time.",
        do="Record operators and Python stacks (ProfilerActivity.CPU, with_stack=True), or capture with tracekit, to "
        "see what the host did meanwhile.",
        evidence=evidence(profile, _next_events(profile, pieces.end[is_counted])),
        link=_PROFILER,
        confidence="inferred",
        claim=pieces.union(is_claimed).minus(profile.waits_in_collectives),
    )


def _next_events(profile: Profile, ends: Ints) -> Ints:
    """The first event that begins after each of these times; the last of all, where none does."""
    trace = profile.trace
    rows = trace.where(lambda part: part.roles.host | part.roles.gpu)
    return distinct(rows[np.minimum(np.searchsorted(trace.ts_ns[rows], ends), len(rows) - 1)])


def between_calls(profile: Profile) -> Bools:
    """The short pieces in which the GPU waits for the host's next call and nothing else of the host was recorded,
    because operators never were: whatever it does, it is the host that is slow."""
    trace, pieces = profile.trace, profile.attribution.pieces
    calls = trace.where(lambda part: part.roles.runtime & part.process & part.lasting)
    if has_operators(trace) or not len(calls) or mostly_unknown(profile):
        return np.zeros(len(pieces.start), bool)
    first, last = int(trace.ts_ns[calls[0]]), int(trace.events_at(calls).end_ns.max())
    return pieces.of("unrecorded") & (pieces.dur < LEAST_NS) & (pieces.start >= first) & (pieces.end <= last)
