"""What faces need from a finding to show the events behind it."""

from tracekit.findings import Finding
from tracekit.profile import Profile


def points_at_events(profile: Profile, finding: Finding) -> None:
    """Its evidence consists of rows of the events table, unchanged; only an empty trace has no evidence."""
    trace = profile.trace
    assert finding.evidence or finding.id == "empty", f"a finding needs evidence: {finding.title!r} has none"
    for each in finding.evidence:
        assert each.name == trace.names[trace.name_codes[each.event]]
        assert (each.start_ns, each.dur_ns) == (trace.ts_ns[each.event], trace.dur_ns[each.event])
        inside = trace.steps.of(trace.ts_ns[[each.event]])[0]
        assert each.step == (trace.steps.number[inside] if inside >= 0 else None)
