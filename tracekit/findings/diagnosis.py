"""The verdict on a variant, and the findings in order."""

from dataclasses import dataclass, replace

from tracekit.findings.finding import Finding
from tracekit.findings.ranking import ranked, worth_telling
from tracekit.findings.verdict import VERDICTS, Verdict, as_finding, of_the_gpu, verdict
from tracekit.profile import Profile
from tracekit.profile.recording_words import in_words

_DECIDES = 0.25  # of a step: what costs so much bounds it, however busy the GPU is the rest of the time


@dataclass(frozen=True)
class Diagnosis:
    """What bounds a variant's step, and all findings in order, small ones included."""

    verdict: Verdict
    all_findings: list[Finding]

    @property
    def findings(self) -> list[Finding]:
        """The findings that are worth a reader's time."""
        return [*filter(worth_telling, self.all_findings)]


def diagnosis(profile: Profile, findings: list[Finding]) -> Diagnosis:
    """The diagnosis that the findings of all rules, in any order, add up to.

    The first finding says what bounds the step. If the GPU sets the pace although no rule says so and no finding costs
    much, or if the id of the first finding is not one of `VERDICTS`, a finding that says what bounds the step is put
    before it. All of it is said of steps, or of the recording where it has none.
    """
    made = _diagnosis(profile, findings)
    return Diagnosis(
        replace(made.verdict, sentence=in_words(profile, made.verdict.sentence)),
        [
            replace(each, title=in_words(profile, each.title), advice=in_words(profile, each.advice))
            for each in made.all_findings
        ],
    )


def _diagnosis(profile: Profile, findings: list[Finding]) -> Diagnosis:
    listed = ranked(profile, findings)
    first = next(filter(worth_telling, listed), None)
    if first is None:
        return Diagnosis(verdict(profile), listed)
    if first.id not in VERDICTS or _leaves_the_gpu(first, listed):
        usual = verdict(profile)
        if first.id not in VERDICTS or (of_the_gpu(usual.id) and (usual.share or 0.0) > (first.share or 0.0)):
            return Diagnosis(usual, [as_finding(profile, usual, listed), *listed])
    return Diagnosis(Verdict(first.id, first.title, first.share, first.where), listed)


def _leaves_the_gpu(first: Finding, listed: list[Finding]) -> bool:
    """Whether the GPU may set the pace nevertheless."""
    return first.share is not None and first.share < _DECIDES and not any(of_the_gpu(each.id) for each in listed)
