"""Which laws does a trace break so badly that figures must not be believed? This leads every report that has any."""

from tracekit.profile import Profile
from tracekit.report.blocks import Sentences
from tracekit.report.model import Report
from tracekit.report.section import Contents, of_run
from tracekit.sanitize import sanitize
from tracekit.trace.facts import SEVERITIES, Severity
from tracekit.units import many

_MAX_LINES = 2
_PREFIX: dict[Severity, str] = {"refusal": "Unknown", "doubt": "In doubt"}


@of_run("doubts", "Doubts", rank=-1, stage="lead")
def doubts(report: Report) -> Contents | None:
    """The gravest breaches, one line each, with the variants that they are of where not all have them."""
    lines = doubt_lines(report.profiles)
    return Contents((Sentences(tuple(lines), "lead"),)) if lines else None


def doubt_lines(profiles: list[Profile]) -> list[str]:
    """A sentence for each of the gravest breaches of these variants' traces; the last also counts the others."""
    names: dict[tuple[Severity, str], list[str]] = {}
    for profile in profiles:
        for breach in profile.health:
            if breach.is_grave:
                names.setdefault((breach.severity, breach.message), []).append(profile.name)
    lines = []
    for severity, message in sorted(names, key=lambda key: SEVERITIES.index(key[0])):
        of = names[severity, message]
        prefix = _PREFIX[severity] if len(of) == len(profiles) else f"{_PREFIX[severity]}, {', '.join(of)}"
        lines.append(f"{sanitize(prefix)}: {sanitize(message)}")
    if (more := len(lines) - _MAX_LINES) > 0:
        lines[_MAX_LINES - 1] += f" ({many(more, 'more law')} {'is' if more == 1 else 'are'} broken: see the notes.)"
    return lines[:_MAX_LINES]
