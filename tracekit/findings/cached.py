"""A diagnosis from the cache, valid as long as nothing that a rule reads has changed."""

from collections.abc import Iterable
from dataclasses import replace

import msgspec

from tracekit.analyses.cached import name_of
from tracekit.findings.diagnosis import Diagnosis
from tracekit.findings.finding import Finding
from tracekit.findings.verdict import Verdict
from tracekit.profile import Profile


class _Stored(msgspec.Struct, frozen=True):
    verdict: Verdict
    all_findings: list[Finding]


def recall(profile: Profile, rules: Iterable[str]) -> Diagnosis | None:
    """The findings of the rules of these modules; None where they never ran, or something has changed since."""
    content = profile.trace.entry.recall(_name(profile, rules)) if profile.trace.entry is not None else None
    if content is None:
        return None
    try:
        known = msgspec.json.decode(content, type=_Stored)
    except msgspec.DecodeError:
        return None
    return Diagnosis(known.verdict, known.all_findings)


def remember(profile: Profile, rules: Iterable[str], diagnosis: Diagnosis) -> None:
    """Store a diagnosis, without the claims, which were needed only to rank it."""
    if profile.trace.entry is not None:
        findings = [replace(each, claim=None) for each in diagnosis.all_findings]
        content = msgspec.json.encode(_Stored(diagnosis.verdict, findings))
        profile.trace.entry.remember(_name(profile, rules), content)


def _name(profile: Profile, rules: Iterable[str]) -> str:
    return name_of(profile, "diagnosis", __name__, *sorted(set(rules)))
