"""Which findings rest on what is known? A finding loses the part of the time it claims of which nobody knows. One that
rests on figures that a breach of a law spoils, or that claims mostly unknown time, is withheld, with the breach that
says why.
"""

from dataclasses import dataclass, replace

from tracekit.engine.buckets import ON_THE_GPU
from tracekit.findings.finding import Finding
from tracekit.intervals import Union
from tracekit.profile import Profile
from tracekit.trace.facts import Breach, Figure

_MIN_SHARE_OF_CLAIM = 0.1  # of the time claimed: a finding rests on a figure if so much of it is of that kind
_MIN_KNOWN_SHARE = 0.5  # of the time claimed: of a finding that claims less known time, too little is known


@dataclass(frozen=True)
class Withheld:
    """A finding that is not told: its kind, the law that the trace breaks, and the sentence that says how."""

    id: str
    law: str
    reason: str


def believed(profile: Profile, findings: list[Finding]) -> tuple[list[Finding], list[Withheld]]:
    """The findings that rest on what is known, each with what it rests on; and those that do not."""
    kept, withheld, unknown = [], [], profile.trace.unknown
    for finding in findings:
        if finding.claim is None:
            kept.append(finding)
            continue
        rests_on = finding.rests_on or _rests_on(profile, finding.claim)
        claim = finding.claim.minus(unknown.gpu if profile.trace.device == "gpu" else unknown.host)
        breach = next(
            (each for each in profile.trace.health if each.everywhere and {*each.touches} & {*rests_on}), None
        )
        if breach is None and claim.total() < _MIN_KNOWN_SHARE * finding.claim.total():
            breach = _makes_unknown(profile)
        if breach is not None:
            withheld.append(Withheld(finding.id, breach.id, breach.message))
        else:
            kept.append(replace(finding, claim=claim, rests_on=rests_on))
    return kept, withheld


def _rests_on(profile: Profile, claim: Union) -> tuple[Figure, ...]:
    """The figures that make up the time claimed: every cost is one per step."""
    if profile.trace.device != "gpu":
        return ("host time", "steps")
    pieces = profile.attribution.pieces
    working = pieces.union(pieces.of(*ON_THE_GPU))
    busy = claim.common(working).total() / max(claim.total(), 1)
    figures: tuple[Figure, ...] = ("steps",)
    if busy < 1 - _MIN_SHARE_OF_CLAIM:
        figures = ("gpu idle", *figures)
    return ("gpu work", *figures) if busy >= _MIN_SHARE_OF_CLAIM else figures


def _makes_unknown(profile: Profile) -> Breach | None:
    """The breach that makes most of the time unknown."""
    masked = (breach for breach in profile.trace.health if len(breach.gpu.starts) or len(breach.host.starts))
    return max(masked, key=lambda breach: breach.gpu.total() + breach.host.total(), default=None)


def why_unknown(profile: Profile) -> Breach | None:
    """The breach because of which nobody knows what bounds a step; None if that can be told."""
    decisive = {"gpu work", "gpu idle"} if profile.trace.device == "gpu" else {"host time"}
    spoiling = (breach for breach in profile.trace.health if breach.everywhere)
    return next((breach for breach in spoiling if {*breach.touches} & {*decisive, "steps"}), None)
