"""Which findings rest on what is known? A finding loses the part of the time it claims of which nobody knows. One that
rests on figures that a breach of a law spoils, or that claims mostly unknown time, is withheld, with the breach that
says why.
"""

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from tracekit.base.intervals import Union
from tracekit.engine.buckets import ON_THE_GPU, WALL
from tracekit.findings.finding import Finding
from tracekit.profile import Profile
from tracekit.trace.facts import Breach, Figure

_MADE_OF: dict[Figure, tuple[str, ...]] = {
    "gpu work": ON_THE_GPU,
    "gpu idle": tuple(key for key in WALL if key not in ON_THE_GPU),
    "host time": tuple(key for key in WALL if key not in (*ON_THE_GPU, "gpu_gap", "sync_stall")),
}
_MIN_SHARE_OF_CLAIM = 0.1  # of the time claimed: a finding rests on a figure if so much of it is of that kind
_BEFORE_ANY_WORK = ("cold_start",)  # findings about a time in which the GPU cannot have had any work yet
_MIN_KNOWN_SHARE = 0.5  # of the time claimed: of a finding that claims less known time, too little is known


class Withheld(Struct, frozen=True):
    """A finding that is not told: its kind, the law that the trace breaks, and the sentence that says how."""

    id: str
    law: str
    reason: str


def believed(profile: Profile, findings: list[Finding]) -> tuple[list[Finding], list[Withheld]]:
    """The findings that rest on what is known, each with what it rests on; and those that do not."""
    on_gpu, unknown = profile.trace.device == "gpu", profile.trace.unknown
    before_any_work = unknown.gpu if on_gpu else unknown.host
    unknown_time = unknown.gpu.plus(profile.unseen) if on_gpu else unknown.host
    made_of: dict[Figure, Union] = {}
    if on_gpu:
        pieces = profile.attribution.pieces
        made_of = {figure: pieces.union(pieces.of(*buckets)) for figure, buckets in _MADE_OF.items()}
    believed_findings, withheld = [], []
    for finding in findings:
        if finding.claim is None and finding.cost_ns is None:  # a doubt of its own
            believed_findings.append(finding)
            continue
        claim, claimed_ns, known_ns = finding.claim, 0, 0
        if claim is not None:
            claimed_ns = claim.total()
        rests_on = finding.rests_on
        if not rests_on:  # every cost is one per step
            least_ns = _MIN_SHARE_OF_CLAIM * max(claimed_ns, 1)
            parts = (key for key, time in made_of.items() if claim is None or claim.common(time).total() >= least_ns)
            rests_on = (*(parts if on_gpu else ("host time",)), "steps", "causes")
        breach = _spoiling(profile, rests_on)
        if claim is not None:
            claim = claim.minus(before_any_work if finding.id in _BEFORE_ANY_WORK else unknown_time)
            known_ns = claim.total()
        if breach is None and known_ns < _MIN_KNOWN_SHARE * claimed_ns:
            # The one that makes most of the time unknown.
            masking = (law for law in profile.health if len(law.gpu.starts) or len(law.host.starts))
            breach = max(masking, key=lambda law: law.gpu.total() + law.host.total(), default=None)
        if breach is not None:
            withheld.append(Withheld(finding.id, breach.id, breach.message))
        else:
            believed_findings.append(replace(finding, claim=claim, rests_on=rests_on))
    return believed_findings, withheld


def why_unknown(profile: Profile) -> Breach | None:
    """The breach because of which nobody knows what bounds a step; None if that can be told."""
    decisive: tuple[Figure, ...] = ("gpu work", "gpu idle") if profile.trace.device == "gpu" else ("host time",)
    return _spoiling(profile, (*decisive, "steps", "causes"))


def _spoiling(profile: Profile, figures: Iterable[Figure]) -> Breach | None:
    """The gravest breach that spoils one of these figures: everywhere, in steps that the means cover, since no other is
    left, or in most of all steps."""
    for breach in profile.health:
        if breach.is_grave and {*breach.touches} & {*figures}:
            spoiled = [*breach.steps]
            if breach.everywhere or profile.counted[spoiled].any() or 2 * len(spoiled) > len(profile.counted):
                return breach
    return None
