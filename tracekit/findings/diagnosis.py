"""The verdict on a variant, and the findings in order."""

from dataclasses import dataclass, replace

from tracekit.engine.buckets import ON_THE_GPU
from tracekit.findings.counted import Steps
from tracekit.findings.finding import Finding
from tracekit.findings.ranking import ranked, worth_telling
from tracekit.findings.saving import Savings
from tracekit.findings.verdict import VERDICTS, Verdict, as_finding, of_the_gpu, verdict
from tracekit.profile import Profile
from tracekit.profile.recording_words import has_steps, in_words

_CLEARLY = 0.05  # of a step: what costs so much more than the GPU's work bounds the step, and not the GPU


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

    The first finding says what bounds the step. If the GPU sets the pace although no rule says so, or if the id of the
    first finding is not one of `VERDICTS`, a finding that says what bounds the step is put before it. All of it is said
    of steps, or of the recording where it has none.
    """
    made = _diagnosis(profile, findings)
    return Diagnosis(
        replace(made.verdict, sentence=in_words(profile, made.verdict.sentence)),
        [
            replace(
                finding,
                headline=in_words(profile, finding.headline),
                why=in_words(profile, finding.why),
                do=in_words(profile, finding.do),
                also=tuple(in_words(profile, part) for part in finding.also),
                of_recording=not has_steps(profile),
            )
            for finding in made.all_findings
        ],
    )


def _diagnosis(profile: Profile, findings: list[Finding]) -> Diagnosis:
    listed = ranked(profile, findings)
    told = [*filter(worth_telling, listed)]
    if not told:
        return Diagnosis(verdict(profile), listed)
    first = told[0]
    if first.once or first.id not in VERDICTS or _leaves_the_gpu(profile, first, listed):
        usual = verdict(profile)
        if first.once or first.id not in VERDICTS or of_the_gpu(usual.id):
            return Diagnosis(usual, [as_finding(profile, usual, listed), *listed])
    return Diagnosis(Verdict(first.id, first.title, _time(first), first.where), listed)


def _leaves_the_gpu(profile: Profile, first: Finding, listed: list[Finding]) -> bool:
    """Whether the GPU sets the pace nevertheless: where its work, but for what the finding claims, were free, the step
    would save about as much. Where the host works all the time, too, it saves nothing."""
    if not first.cost_ns or first.claim is None or any(of_the_gpu(each.id) for each in listed):
        return False
    pieces = profile.attribution.pieces
    work = pieces.union(pieces.of(*ON_THE_GPU)).minus(first.claim)
    steps = Steps.of(profile)
    return Savings(profile, steps).of(work).step_ns + _CLEARLY * steps.length > first.cost_ns


def _time(first: Finding) -> float | None:
    """The share of the step that a finding is about, whether or not all of it would be saved."""
    if first.share is None or not first.cost_ns or first.claimed_ns is None:
        return first.share
    return first.share * first.claimed_ns / first.cost_ns
