"""The verdict on a variant, and the findings in order."""

from dataclasses import dataclass

from tracekit.findings.finding import Finding
from tracekit.findings.ranking import ranked, worth_telling
from tracekit.findings.verdict import VERDICTS, Verdict, as_finding, verdict
from tracekit.profile import Profile

_DECIDES = 0.25  # of a step: what costs so much bounds it, however busy the GPU is the rest of the time


@dataclass(frozen=True)
class Diagnosis:
    """What bounds a variant's step, and all that the rules found, in order; of small ones too."""

    verdict: Verdict
    all_findings: list[Finding]

    @property
    def findings(self) -> list[Finding]:
        """Those that are worth a reader's time."""
        return [*filter(worth_telling, self.all_findings)]


def diagnosis(profile: Profile, findings: list[Finding]) -> Diagnosis:
    """Of what the rules found, in any order.

    What bounds the step is the first finding. Where the GPU sets the pace, no rule says how to change that, and no
    finding costs much, or where only rules beyond the verdicts' list found something, that the step is so bound comes
    first.
    """
    listed = ranked(profile, findings)
    first = next(filter(worth_telling, listed), None)
    if first is None:
        return Diagnosis(verdict(profile), listed)
    if first.id not in VERDICTS or _leaves_the_gpu(first, listed):
        usual = verdict(profile)
        if first.id not in VERDICTS or (_of_the_gpu(usual) and (usual.share or 0.0) > (first.share or 0.0)):
            return Diagnosis(usual, [as_finding(profile, usual, listed), *listed])
    return Diagnosis(Verdict(first.id, first.title, first.share, first.where), listed)


def _leaves_the_gpu(first: Finding, listed: list[Finding]) -> bool:
    """Whether the GPU may set the pace all the same."""
    return first.share is not None and first.share < _DECIDES and not any(map(_of_the_gpu, listed))


def _of_the_gpu(said: Finding | Verdict) -> bool:
    return said.id.startswith("gpu_bound") or said.id == "cuda_graph_ok_gpu_bound"
