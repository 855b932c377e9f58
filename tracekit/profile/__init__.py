"""What was opened: variants, each with its captures, read and attributed."""

from tracekit.profile.opening import open_subject
from tracekit.profile.profile import LEAST_SHARE, Capture, Mean, Profile
from tracekit.profile.subject import Member, Subject, Untraced, has_figures

__all__ = [
    "LEAST_SHARE",
    "Capture",
    "Mean",
    "Member",
    "Profile",
    "Subject",
    "Untraced",
    "has_figures",
    "open_subject",
]
