"""Does the GPU idle while nothing was recorded of what the host does?"""

from collections.abc import Iterator

from tracekit.findings import Finding, rule
from tracekit.profile import Profile
from tracekit.trace.facts.devices import device_side_missing
from tracekit.units import duration

_PROFILER = "https://docs.pytorch.org/docs/stable/profiler.html"


@rule("unrecorded_host")
def unrecorded_host(profile: Profile) -> Iterator[Finding]:
    """`idle_unexplained`: where the trace says nothing of the host, nobody can tell what it does."""
    mean, pieces = profile.means["wall"], profile.attribution.pieces
    if mean is None or not mean.parts.get("unrecorded") or device_side_missing(profile.trace) is not None:
        return
    is_claimed = pieces.of("unrecorded") & ~profile.unseen.covers(pieces.start)
    longest_ns = int(pieces.dur[is_claimed & profile.counted[pieces.step]].max(initial=0))
    yield Finding(
        "idle_unexplained",
        "The GPU idles, and nothing was recorded meanwhile"
        if profile.trace.device == "gpu"
        else "Nothing was recorded for a while",
        why=f"What the host does then is unknown: {duration(mean.parts['unrecorded'])} a step, up to "
        f"{duration(longest_ns)} at a time.",
        do="Record operators and Python stacks (ProfilerActivity.CPU, with_stack=True), or capture with tracekit, to "
        "see what the host did meanwhile.",
        link=_PROFILER,
        confidence="inferred",
        claim=pieces.union(is_claimed).minus(profile.waits_in_collectives),
    )
