"""A diagnosis from the cache, valid as long as nothing that a rule reads has changed."""

from collections.abc import Callable, Collection
from dataclasses import replace

import msgspec

from tracekit.analyses.shared.cached import name_of
from tracekit.findings.diagnosis import Diagnosis
from tracekit.findings.finding import Finding
from tracekit.findings.verdict import Verdict
from tracekit.profile import Profile
from tracekit.trace.storing.results import recall, remember


class _Stored(msgspec.Struct, frozen=True):
    verdict: Verdict
    all_findings: list[Finding]


def known_diagnosis(profile: Profile, rules: Collection[str], work_out: Callable[[], Diagnosis]) -> Diagnosis:
    """What the rules of these modules found before; else, or where something has changed, what they find now.

    It is kept without the claims, which are needed only to rank the findings. Only code of tracekit's shows in the name
    of what is kept: if a rule lives elsewhere, all are asked.
    """
    entry = profile.trace.entry
    if entry is None or not all(module.startswith("tracekit.") for module in rules):
        return work_out()
    name = name_of(profile, "diagnosis", __name__, *sorted(set(rules)))
    if (known := recall(entry, name, _Stored)) is not None:
        return Diagnosis(known.verdict, known.all_findings)
    made = work_out()
    remember(entry, name, _Stored(made.verdict, [replace(each, claim=None) for each in made.all_findings]))
    return made
