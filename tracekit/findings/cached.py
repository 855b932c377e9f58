"""A diagnosis from the cache, which is valid until something that a rule reads changes."""

from collections.abc import Callable, Collection
from dataclasses import replace

import msgspec

from tracekit.findings.diagnosis import Diagnosis
from tracekit.findings.finding import Finding
from tracekit.findings.verdict import Verdict
from tracekit.profile import Profile
from tracekit.profile.cache_names import name_of
from tracekit.trace.storing.results import recall, remember


class _Stored(msgspec.Struct, frozen=True):
    verdict: Verdict
    all_findings: list[Finding]


def known_diagnosis(profile: Profile, rules: Collection[str], work_out: Callable[[], Diagnosis]) -> Diagnosis:
    """The stored diagnosis by these modules' rules; if there is none, or something has changed, they are asked.

    It is stored without claims and work, which are needed only to rank the findings. The name in the cache depends on
    the code of tracekit only, so if a rule comes from outside tracekit, all rules are asked.
    """
    entry = profile.trace.entry
    if entry is None or not all(module.startswith("tracekit.") for module in rules):
        return work_out()
    name = name_of(profile, "diagnosis", __name__, *sorted(set(rules)))
    if (known := recall(entry, name, _Stored)) is not None:
        return Diagnosis(known.verdict, known.all_findings)
    made = work_out()
    remember(
        entry,
        name,
        _Stored(
            made.verdict, [replace(each, claim=None, work=None, undone=None, host=None) for each in made.all_findings]
        ),
    )
    return made
