"""Which variants failed or compute something else, and which laws does a trace break so badly that figures must not be
believed? This leads every report that has any.
"""

from collections.abc import Iterator

from tracekit.base.names import sanitize
from tracekit.base.units import many
from tracekit.findings.compiler_advice import against_failure
from tracekit.profile import Profile
from tracekit.profile.run_facts import differs
from tracekit.report.blocks import Sentences
from tracekit.report.model import Report
from tracekit.report.section import Contents, of_run
from tracekit.study.failures import ENDINGS
from tracekit.trace.facts import SEVERITIES, Severity

_MAX_LINES = 2
_REASON = 160  # characters of an error
_FAILURES = ("error", "crash", "oom", "timeout")
_PREFIX: dict[Severity, str] = {"refusal": "Unknown", "doubt": "In doubt"}


@of_run("doubts", "Doubts", rank=-1, stage="lead")
def doubts(report: Report) -> Contents | None:
    """What to know before any figure is read, one line each."""
    lines = doubt_lines(report)
    return Contents((Sentences(tuple(lines), "lead"),)) if lines else None


def doubt_lines(report: Report) -> list[str]:
    """Variants that failed, variants whose losses differ from their baseline's, and what is wrong with traces."""
    if report.subject.study is not None:  # its cells have sections of their own
        return _of_laws(report.profiles)
    different = [
        f"In doubt, {sanitize(member.name)}: {differing}. It may not compute the same."
        for member in report.members
        if (differing := differs(member, report.base_of(member)))
    ]
    return [*_failed(report), *different, *_of_laws(report.profiles)]


def _failed(report: Report) -> Iterator[str]:
    for member in report.subject.members:
        if member.variant is None or member.variant.outcome not in _FAILURES:
            continue
        reason = sanitize(member.variant.error or "", _REASON).rstrip(".")
        advice = against_failure(member.variant.error or "") or ""
        failed = f"{sanitize(member.name)} {ENDINGS[member.variant.outcome]}{f': {reason}' if reason else ''}."
        yield f"{failed} {advice}".strip()


def _of_laws(profiles: list[Profile]) -> list[str]:
    """A sentence for each of the gravest breaches of these variants' traces; the last also counts the others."""
    names: dict[tuple[Severity, str], list[str]] = {}
    for profile in profiles:
        for breach in profile.health:
            if breach.is_grave:
                names.setdefault((breach.severity, breach.message), []).append(profile.name)
    lines = []
    for severity, message in sorted(names, key=lambda key: SEVERITIES.index(key[0])):
        variants = names[severity, message]
        prefix = _PREFIX[severity] + ("" if len(variants) == len(profiles) else f", {', '.join(variants)}")
        lines.append(f"{sanitize(prefix)}: {sanitize(message)}")
    if (more_lines := len(lines) - _MAX_LINES) > 0:
        lines[_MAX_LINES - 1] += (
            f" ({many(more_lines, 'more law')} {'is' if more_lines == 1 else 'are'} broken: see the notes.)"
        )
    return lines[:_MAX_LINES]
