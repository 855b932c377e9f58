"""The variants of a report whose owners are known: of captures with a recording with stacks, and of such traces."""

from tracekit.profile import Profile
from tracekit.report.model import Report
from tracekit.report.owner_costs import OfVariant

MOST_EVENTS = 2_000_000  # of a bare trace: owners need all of it in memory, and `tracekit lines` tells those of more


def owned(report: Report) -> list[OfVariant]:
    """In the view that all sections of owners speak of: wall time, where any variant can answer that."""
    known = [profile for profile in report.profiles if _recorded(profile)]
    view = "wall" if any(profile.means["wall"] is not None for profile in known) else "host"
    return [OfVariant(profile.name, profile.owner_means, view) for profile in known]


def _recorded(profile: Profile) -> bool:
    if profile.trace.has_stacks:
        return profile.variant is not None or len(profile.trace.ts_ns) <= MOST_EVENTS
    return profile.detail_path is not None


def baselines(report: Report) -> dict[str, str]:
    """For each variant the one that it is set against."""
    return {entry.variant: entry.baseline for entry in report.comparisons}
