"""The verdict on a variant, and the findings in order."""

from dataclasses import dataclass

from tracekit.findings.finding import Finding
from tracekit.findings.ranking import ranked, worth_telling
from tracekit.findings.verdict import Verdict, as_finding, verdict
from tracekit.profile import Profile


@dataclass(frozen=True)
class Diagnosis:
    """What bounds a variant's step, and all that the rules found, in order; of small ones too."""

    verdict: Verdict
    found: list[Finding]

    @property
    def findings(self) -> list[Finding]:
        """Those that are worth a reader's time."""
        return [*filter(worth_telling, self.found)]


def diagnosis(profile: Profile, found: list[Finding]) -> Diagnosis:
    """Of what the rules found, in any order."""
    listed = ranked(profile, found)
    first = next(filter(worth_telling, listed), None)
    bounded = verdict(profile, first)
    if first is not None and bounded.id != first.id:
        listed = [as_finding(profile, bounded, listed), *listed]
    return Diagnosis(bounded, listed)
