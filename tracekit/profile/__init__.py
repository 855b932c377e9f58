"""What was opened: variants, each with its captures, read and attributed."""

from tracekit.profile.capture import Capture, Window, Workload
from tracekit.profile.profile import Mean, Profile
from tracekit.profile.subject import Member, Missing, Subject, open_subject

__all__ = [
    "Capture",
    "Mean",
    "Member",
    "Missing",
    "Profile",
    "Subject",
    "Window",
    "Workload",
    "open_subject",
]
