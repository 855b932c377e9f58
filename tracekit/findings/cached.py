"""A diagnosis from the cache, as long as nothing changed that a rule could look at."""

from dataclasses import replace

import msgspec

from tracekit.analyses.cached import CODE, name_of
from tracekit.findings.diagnosis import Diagnosis
from tracekit.findings.finding import Finding
from tracekit.findings.verdict import Verdict
from tracekit.profile import Profile


class _Held(msgspec.Struct, frozen=True):
    verdict: Verdict
    found: list[Finding]


def recall(profile: Profile) -> Diagnosis | None:
    """What was found before; None where nobody looked, or something changed."""
    held = profile.trace.entry.recall(_name(profile)) if profile.trace.entry is not None else None
    if held is None:
        return None
    try:
        known = msgspec.json.decode(held, type=_Held)
    except msgspec.DecodeError:
        return None
    return Diagnosis(known.verdict, known.found)


def remember(profile: Profile, diagnosis: Diagnosis) -> None:
    """Keep a diagnosis, without the claims: they served to rank it."""
    if profile.trace.entry is not None:
        found = [replace(each, claim=None) for each in diagnosis.found]
        held = msgspec.json.encode(_Held(diagnosis.verdict, found))
        profile.trace.entry.remember(_name(profile), held)


def _name(profile: Profile) -> str:
    return name_of(profile, "diagnosis", "findings", *CODE)
