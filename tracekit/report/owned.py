"""The variants of a report whose owners are known: captures that recorded stacks, and traces with stacks."""

from tracekit.lines.ownership import MOST_EVENTS
from tracekit.profile import Profile
from tracekit.report.model import Report
from tracekit.report.owner_costs import VariantOwners


def owned(report: Report) -> list[VariantOwners]:
    """The owners in the view that all of these sections use: wall time, where any variant can answer it."""
    profiles = [profile for profile in report.profiles if _has_owners(profile)]
    view = "wall" if any(profile.means["wall"] is not None for profile in profiles) else "host"
    return [VariantOwners(profile.name, profile.owner_means, view) for profile in profiles]


def _has_owners(profile: Profile) -> bool:
    if profile.trace.has_stacks:
        return profile.variant is not None or len(profile.trace.ts_ns) <= MOST_EVENTS
    return profile.detail_path is not None
