"""A diagnosis from the cache, valid as long as nothing that a rule reads has changed."""

from collections.abc import Iterable
from dataclasses import replace

import msgspec

from tracekit.analyses.cached import name_of
from tracekit.findings.diagnosis import Diagnosis
from tracekit.findings.finding import Finding
from tracekit.findings.verdict import Verdict
from tracekit.profile import Profile
from tracekit.trace.storing import results


class _Stored(msgspec.Struct, frozen=True):
    verdict: Verdict
    all_findings: list[Finding]


def recall(profile: Profile, rules: Iterable[str]) -> Diagnosis | None:
    """What the rules of these modules found before; None where nobody looked, or something changed."""
    known = results.recall(profile.trace.entry, _name(profile, rules), _Stored) if profile.trace.entry else None
    return Diagnosis(known.verdict, known.all_findings) if known is not None else None


def remember(profile: Profile, rules: Iterable[str], diagnosis: Diagnosis) -> None:
    """Keep a diagnosis, without the claims: they served to rank it."""
    if profile.trace.entry is not None:
        findings = [replace(each, claim=None) for each in diagnosis.all_findings]
        results.remember(profile.trace.entry, _name(profile, rules), _Stored(diagnosis.verdict, findings))


def _name(profile: Profile, rules: Iterable[str]) -> str:
    return name_of(profile, "diagnosis", __name__, *sorted(set(rules)))
