"""The verdict on a variant, and the findings in order."""

from dataclasses import dataclass

from tracekit.findings.finding import Finding
from tracekit.findings.ranking import ranked, worth_telling
from tracekit.findings.verdict import VERDICTS, Verdict, as_finding, verdict
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
    """Of what the rules found, in any order.

    What bounds the step is the first finding. Where the GPU does, and no rule says how to change that, or where only
    rules beyond the verdicts' list found something, that the step is so bound comes first.
    """
    listed = ranked(profile, found)
    first = next(filter(worth_telling, listed), None)
    if first is None:
        return Diagnosis(verdict(profile), listed)
    if first.id not in VERDICTS or (first.share is not None and not any(map(_of_the_gpu, listed))):
        usual = verdict(profile)
        if first.id not in VERDICTS or (_of_the_gpu(usual) and (usual.share or 0.0) > (first.share or 0.0)):
            return Diagnosis(usual, [as_finding(profile, usual, listed), *listed])
    return Diagnosis(Verdict(first.id, first.title, first.share, first.where), listed)


def _of_the_gpu(said: Finding | Verdict) -> bool:
    return said.id.startswith("gpu_bound") or said.id == "cuda_graph_ok_gpu_bound"
