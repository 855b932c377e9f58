"""What does each finding cost a step, so that no time is counted twice, and in which order do findings appear?

A cost is what a step would save at most without the cause, by a replay: the GPU's work is free where the host sets the
pace, and a host that gets ahead without the cause saves more of the GPU's idle time than the cause itself takes.
"""

from functools import reduce
from itertools import combinations

from msgspec.structs import replace

from tracekit.base.intervals import Union
from tracekit.base.units import count, duration
from tracekit.engine.buckets import ON_THE_GPU
from tracekit.findings.counted import Steps
from tracekit.findings.finding import Finding, as_clause
from tracekit.findings.kernels import queue_waits
from tracekit.findings.saving import Saving, Savings, savings
from tracekit.profile import LEAST_SHARE, Profile

_EXPLAINED_EXCESS = 1.02  # times the time claimed: a smaller difference is not explained
_BEYOND = 1.1  # times what is saved: where as much is claimed, something else keeps it from being saved
_LARGELY_OTHERS = 0.5  # of the time blamed: where costlier findings leave less of it, that is said
_LARGE_PART = 0.25  # of a general finding's cost: what it has one cause for is to be done first
_TAKES_TIME_FROM_GENERAL = 0.5  # of a general finding: a cause that explains as much of it takes its time from it
_SHARED = 0.05  # of the smaller claim: a smaller overlap is not mentioned
_OTHERWISE = 0.1  # of a cost: one by other costs of recording that differs by less is the same
_MANY_LATE_STARTS = 0.02  # of a step: as in `what-if`, which then replays nothing


def ranked(profile: Profile, findings: list[Finding]) -> list[Finding]:
    """Doubts first, then what costs every step, then what happens once; the costliest first.

    Where other costs of recording explain the steps as well, a finding is told with what it then costs, too.
    """
    told, calibration = _ranked(profile, findings), profile.calibration
    if calibration is None or calibration.other is None:
        return told
    otherwise = _ranked(profile.calibrated_by(calibration.other), findings)
    other_costs = {(finding.id, finding.title): finding.cost_ns for finding in otherwise}
    return [_with_other_cost(finding, other_costs.get((finding.id, finding.title))) for finding in told]


def _with_other_cost(finding: Finding, other_ns: float | None) -> Finding:
    if other_ns is None or abs(other_ns - (finding.cost_ns or 0.0)) <= _OTHERWISE * (finding.cost_ns or 0.0):
        return finding
    otherwise = "With other costs of recording, which explain both variants as well, it is up to"
    return replace(finding, why=f"{finding.why} {otherwise} {duration(other_ns)}.")


def _ranked(profile: Profile, findings: list[Finding]) -> list[Finding]:
    """The findings with their costs, in order.

    A finding loses the time that a costlier one claims as well; a finding that is left with almost nothing is not
    listed itself, but named among the `overlaps` of the costlier one and mentioned in its advice. Where steps that the
    means leave out cost enough to be listed, all costs are spread over all steps: costs that are listed together are
    shares of the same step.
    """
    if not findings:
        return []
    steps = _steps(profile, findings)
    of_steps = savings(profile, steps)
    alone = {id(finding): _saving_if_only_this(of_steps, finding) for finding in findings}
    gross = sorted(
        findings,
        key=lambda finding: (
            -alone[id(finding)].step_ns * (_TAKES_TIME_FROM_GENERAL if finding.general else 1.0),
            -_claimed_ns(steps, finding),
        ),
    )
    shared = _overlaps(gross)
    # How many steps costs are spread over, where that is not the counted ones, of which the means are.
    over_steps = len(steps.number) if len(steps.number) != profile.counted_steps else 0
    claims: list[Union] = []
    # When the GPU works, and when nobody knows what it or the host does, nothing is left to save for a host that gets
    # ahead; nor is what the findings claim.
    pieces = profile.attribution.pieces
    busy_or_unknown = pieces.union(pieces.of(*ON_THE_GPU, "unrecorded")).plus(profile.unseen)
    claimed_times = (finding.claim for finding in gross if finding.claim is not None)
    blamed_time = reduce(Union.plus, claimed_times, busy_or_unknown)
    unblamed, remaining_ns = steps.length - steps.mean(blamed_time), steps.length
    # How much may be saved beside the time claimed: for the costliest finding all, then what none claims.
    ahead = remaining_ns
    with_costs = []
    for finding in gross:
        cost = claimed = finding.cost_ns
        saving = alone[id(finding)]
        if finding.claim is not None:
            claimed = steps.mean(reduce(Union.minus, claims, finding.claim))
            cost = min(saving.step_ns * claimed / (_claimed_ns(steps, finding) or 1.0), claimed + ahead)
            unblamed -= max(cost - claimed, 0.0) if claims else 0.0
            ahead = unblamed
            claims.append(finding.claim)
        if cost is not None and not finding.once:
            cost = min(cost, remaining_ns)
            remaining_ns -= cost
        share = finding.share
        if share is None and cost is not None and steps.length:
            share = cost / steps.length
        overlaps = tuple(dict.fromkeys((*finding.overlaps, *shared.get(id(finding), ()))))
        # One that is only told as a part of others is told with what it saves alone.
        is_told = share is None or share >= LEAST_SHARE
        told_ns = cost if is_told else saving.step_ns
        is_rest = is_told and (claimed or 0.0) < _LARGELY_OTHERS * _claimed_ns(steps, finding)
        others = " Its cost leaves out what other findings already count." if is_rest else ""
        with_costs.append(
            replace(
                finding,
                why=_with_saving(finding.why, told_ns, over_steps)
                + _notes(profile, finding, saving, cost, claimed)
                + others,
                do=_with_saving(finding.do, told_ns, over_steps),
                cost_ns=cost,
                claimed_ns=claimed,
                share=share,
                unprofiled=steps.unprofiled,
                over_steps=finding.over_steps if finding.once else over_steps,
                then_bound_by=saving.bound,
                overlaps=overlaps,
            )
        )
    with_parts = _with_parts(steps, with_costs, [alone[id(finding)].step_ns for finding in gross])
    costly = [finding for finding in with_parts if finding.cost_ns is None or finding.cost_ns > 0]
    return sorted(costly, key=order)


def _with_saving(text: str, cost: float | None, over_steps: int) -> str:
    """The text with the cost in place of `{saving}`, and what it is a mean over, where the means are over others."""
    saving, mean = duration(cost or 0.0), f" on average over all {count(over_steps)} steps" if over_steps else ""
    return text.replace("{saving} a step", f"{saving} a step{mean}").replace("{saving}", saving)


def _notes(profile: Profile, finding: Finding, saving: Saving, cost: float | None, claimed: float | None) -> str:
    """Why a finding costs more than the time that is blamed on it; and why more may be saved than the recording tells:
    stacks slow down the host, which bounds what is saved."""
    notes = ""
    if (cost or 0.0) > _EXPLAINED_EXCESS * (claimed or 0.0):
        notes += " Removing it may save more than the time blamed on it, for the host would also run ahead later."
    bounded = saving.bound == "host" and finding.host is None and saving.step_ns * _BEYOND < (claimed or 0.0)
    if bounded and profile.trace.has_stacks:
        notes += " Recording Python stacks slows the host; in a run without them, this may save more."
    # Seen with four processes on one GPU: it serves another one whenever a queue is empty, which each sync makes it.
    if finding.id == "sync_stall" and queue_waits(profile).step_ns > _MANY_LATE_STARTS * sum(profile.parts.values()):
        notes += (
            " But queued work starts late in this recording without a cause in it: if the GPU serves another process "
            "whenever the queue is empty, this saves more."
        )
    return notes


def order(finding: Finding) -> tuple[bool, bool, float]:
    """What findings are sorted by."""
    return finding.cost_ns is not None, finding.once, -(finding.cost_ns or 0.0)


def _saving_if_only_this(of_steps: Savings, finding: Finding) -> Saving:
    """The time of a step that would be saved if this finding's cause alone were removed."""
    if finding.claim is None:
        return Saving(finding.cost_ns or 0.0)
    saving = of_steps.of(finding.claim, finding.work, finding.host, finding.undone)
    # What bounds a step without the claimed time says nothing about one that still spends part of it.
    return saving if finding.saved == 1.0 else Saving(finding.saved * saving.step_ns)


def _with_parts(steps: Steps, with_costs: list[Finding], alone: list[float]) -> list[Finding]:
    """A finding that only costlier ones keep from being listed is mentioned in the advice of the one with which it has
    most time in common."""
    listed: list[Finding] = []
    for finding, cost in zip(with_costs, alone, strict=True):
        if cost >= LEAST_SHARE * steps.length and not worth_telling(finding):
            # How much of each costlier one's cost may be the time that both claim, ns per step.
            parts = [
                min(cost, steps.mean(finding.claim.common(costlier.claim)), costlier.cost_ns)
                if finding.claim is not None and costlier.claim is not None and costlier.cost_ns
                else 0.0
                for costlier in listed
            ]
            part = max(parts, default=0.0)
            if part >= LEAST_SHARE * steps.length:
                holder = parts.index(part)
                sentence = (
                    f"Up to {duration(part)} of this cost has a cause of its own: {as_clause(finding.title)}. "
                    f"{finding.advice}"
                )
                is_large = listed[holder].general and part >= _LARGE_PART * (listed[holder].cost_ns or 0.0)
                do_first = listed[holder].do_first or (finding.do if is_large else "")
                listed[holder] = replace(listed[holder], also=(*listed[holder].also, sentence), do_first=do_first)
        listed.append(finding)
    return listed


def _claimed_ns(steps: Steps, finding: Finding) -> float:
    """The time that a finding claims by itself, ns."""
    return steps.mean(finding.claim) if finding.claim is not None else finding.cost_ns or 0.0


def _steps(profile: Profile, findings: list[Finding]) -> Steps:
    """All steps, where what happens in those that the means leave out costs enough to be listed; else the counted."""
    all_steps = Steps.calibrated(profile, all_steps=True)
    if any(
        finding.every_step and _claimed_ns(all_steps, finding) >= LEAST_SHARE * all_steps.length for finding in findings
    ):
        return all_steps
    return Steps.calibrated(profile)


def worth_telling(finding: Finding) -> bool:
    """Whether a finding costs enough of a step to be listed, or its cost is unknown."""
    return finding.share is None or finding.share >= LEAST_SHARE


def _overlaps(findings: list[Finding]) -> dict[int, list[str]]:
    """For each finding those that claim part of its time."""
    shared: dict[int, list[str]] = {}
    for first, second in combinations(findings, 2):
        if first.id == second.id or first.claim is None or second.claim is None:
            continue
        smaller, larger = sorted((first.claim, second.claim), key=lambda union: len(union.starts))
        common = int(larger.within(smaller.starts, smaller.ends).sum())
        if common > _SHARED * min(smaller.total(), larger.total()):
            shared.setdefault(id(first), []).append(second.id)
            shared.setdefault(id(second), []).append(first.id)
    return shared
