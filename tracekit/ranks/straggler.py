"""The rank that delays the others, or who is late when, in one sentence, and as a finding among those about the rank
that the report shows.

What the shown rank spends in collectives is then mostly the fault of another rank, and so is the finding about them.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import groupby

from msgspec import Struct
from msgspec.structs import replace

from tracekit.base.pages import Cure
from tracekit.base.units import duration, many
from tracekit.engine.buckets import BUCKETS, Bound
from tracekit.findings import VERDICTS, Diagnosis, Finding, Verdict, Where, as_clause, diagnose
from tracekit.findings.counted import stretch
from tracekit.findings.culprits import where_of_buckets
from tracekit.findings.page import FindingPage, declare
from tracekit.findings.ranking import order
from tracekit.findings.rules.communication import as_all_ranks_show
from tracekit.profile import LEAST_SHARE, Profile
from tracekit.ranks.collectives import Collectives
from tracekit.trace.schema import values

_MIN_SHARE_OF_LATENESS = 0.65  # of the time for which others wait: a rank that is late in less is not the one to blame
_MAX_TURNS = 4  # in a sentence
_UNEVEN = "https://docs.pytorch.org/docs/stable/notes/ddp.html#internal-design"
_OF_A_LINE = 0.5  # of the bucket on the late rank: a line with less is not the culprit
_EXPLAINS = 0.5  # of the time lost: a finding about the late rank that costs less does not explain its lateness
# Of its cost: a finding that costs another rank more than that is not what makes this one late.
_MAX_COST_ELSEWHERE = 0.5
# The findings about the late rank that may explain time in a bucket of that kind.
_EXPLAINING: dict[Bound, tuple[str, ...]] = {
    "copies": ("h2d_pageable_copy",),
    "host": ("python_bound", "dispatch_bound", "launch_bound", "host_freeze", "allocator", "garbage_collection"),
    "syncs": ("sync_stall",),
    "compiling": ("compile_in_steps", "recompiles"),
    "data": ("dataloader_bound",),
    "code loading": ("cold_start",),
    "cpu": ("cpu_compute",),
}

declare(
    FindingPage(
        "late_rank",
        "One rank delays the others",
        says="""Traces of several ranks show who arrives last at each collective. The finding names the rank for which
            the others wait longest, how much later it arrives than the first, and in which bucket it spends more; or
            that late ranks change from step to step.""",
        slow="""A collective ends when the last rank has arrived: every other rank stands still until then, however
            fast it is. With graphs, ranks whose batches or partitions have more edges are late.""",
        cost="""How long the rank that loses most by it waits in a step with nothing else to do; where a capture knows
            unprofiled steps, in these. On the rank that is shown, it takes the place of that much `exposed_comm` or,
            on the late rank itself, of what explains its lateness.""",
        limits="""Clocks of different machines are aligned by the collectives themselves, and ranks without a trace are
            not seen. No rank is named where a trace of one breaks a law. Why a rank is late is inferred: a finding
            about it explains at least half of the time lost, and costs no other rank as much.""",
        cures=(
            Cure("Give the ranks equal work: batches of equal size or edges, a balanced partition.", "results"),
            Cure("Mend what the finding says of the late rank, whose own finding says what that changes.", "results"),
            Cure("Where ranks take turns, look for pauses: garbage, checkpoints, slow batches.", "changes nothing"),
        ),
        links=(_UNEVEN,),
        replayed=False,
    )
)


class Straggler(Struct, frozen=True):
    """The rank that keeps others waiting longest. Times are ns per step."""

    rank: int
    late_ns: float  # how much later than the first it arrives itself
    lost_ns: float  # what the rank that loses most by it waits while it has nothing else to do
    bucket: str | None  # that explains most of its lateness
    turns: str = ""  # where the late rank changes: which one is late in which steps

    def sentence(self, at: str = "") -> str:
        """Who delays the others, by how much and why, without the full stop; `at` says where."""
        if self.turns:
            return f"{duration(self.lost_ns)} a step are lost to late ranks, and the late rank changes: {self.turns}"
        because = f", mostly because of {BUCKETS[self.bucket].label}{at}" if self.bucket else ""
        return (
            f"Rank {self.rank} delays the others: it arrives {duration(self.late_ns)} a step later than the first "
            f"rank{because}"
        )


def straggler(matched: Collectives) -> Straggler | None:
    """The rank that the others wait for; None where no rank is late, as far as that is known."""
    delays = {rank: matched.delay_ns(rank) for rank in matched.ranks}
    rank = max(delays, key=lambda number: delays[number])
    if not delays[rank]:
        return None
    caused, steps = matched.caused_ns(rank), max(len(matched.steps), 1)
    bucket = max(caused, key=lambda key: caused[key])
    if delays[rank] < _MIN_SHARE_OF_LATENESS * sum(delays.values()) and (turns := _turns(matched)):
        return Straggler(rank, matched.late_ns(rank) / steps, matched.lost_to_any_ns() / steps, bucket or None, turns)
    return Straggler(rank, matched.late_ns(rank) / steps, matched.lost_ns(rank) / steps, bucket or None)


def _turns(matched: Collectives) -> str:
    """`rank 0 in steps 0–2, rank 1 in steps 3–5`; empty where the same rank is the latest in most steps."""
    steps = Counter(matched.late_rank_of.values())
    if max(steps.values()) > _MIN_SHARE_OF_LATENESS * steps.total():
        return ""
    runs = [(rank, [*run]) for rank, run in groupby(matched.late_rank_of, key=matched.late_rank_of.__getitem__)]
    if len(runs) > _MAX_TURNS:
        turns = [f"rank {rank} in {many(number, 'step')}" for rank, number in steps.most_common(_MAX_TURNS)]
        other_steps = len(steps) - len(turns)
        return ", ".join([*turns, *([f"{many(other_steps, 'more rank')} in others"] if other_steps else [])])
    return ", ".join(
        f"rank {rank} in step{f's {run[0]}–{run[-1]}' if len(run) > 1 else f' {run[0]}'}" for rank, run in runs
    )


def with_waits(diagnosis: Diagnosis, profile: Profile, matched: Collectives | None) -> Diagnosis:
    """The diagnosis of the rank that is shown, with the share of waiting that the traces of all ranks show."""
    rank = profile.captures[0].rank
    if matched is None or matched.unmatched.get(rank, 1):
        return diagnosis
    is_own = values(matched.table["rank"]) == rank
    waited, transferred = (int(values(matched.table[name])[is_own].sum()) for name in ("wait_ns", "transfer_ns"))
    if not waited + transferred:
        return diagnosis
    share = waited / (waited + transferred)
    with_shares = [
        as_all_ranks_show(finding, share) if finding.id == "exposed_comm" else finding
        for finding in diagnosis.all_findings
    ]
    sentence = next(
        (finding.title for finding in with_shares if finding.id == diagnosis.verdict.id), diagnosis.verdict.sentence
    )
    return replace(diagnosis, verdict=replace(diagnosis.verdict, sentence=sentence), all_findings=with_shares)


def with_straggler(diagnosis: Diagnosis, profile: Profile, late: Straggler | None) -> Diagnosis:
    """The diagnosis of the rank that is shown, with the rank that delays it or, if it is late itself, the others.

    The finding takes its cost from the one that counts the same time: on a rank that waits, exposed communication; on
    the late rank, what explains its lateness. It is first unless another verdict costs more.
    """
    step = profile.mean.step_ns if profile.mean is not None else 0.0
    if late is None or not step or late.lost_ns < LEAST_SHARE * step:
        return diagnosis
    slower = stretch(profile, step)
    step, late = step / slower, replace(late, lost_ns=late.lost_ns / slower)
    is_shown = profile.captures[0].rank == late.rank
    theirs = None if late.turns else profile if is_shown else profile.per_rank.get(late.rank)
    about = diagnosis if is_shown else diagnose(theirs) if theirs is not None else None
    why = _explaining(about, late) if about is not None and not late.turns else None
    if why is not None:  # what slows all of them alike makes none of them late: it has to cost another clearly less
        other_profiles = (of_rank for rank, of_rank in profile.per_rank.items() if rank != late.rank)
        other_profile = next(other_profiles, None) if is_shown else None
        compared = diagnosis if not is_shown else diagnose(other_profile) if other_profile is not None else None
        costs = (
            [finding.cost_ns or 0.0 for finding in compared.all_findings if finding.id == why.id] if compared else []
        )
        if sum(costs) > _MAX_COST_ELSEWHERE * (why.cost_ns or 0.0):
            why = None
    place = why.where if why is not None else Where()
    if why is None and theirs is not None and late.bucket is not None:
        line, share = where_of_buckets(theirs, late.bucket)
        place = line if share >= _OF_A_LINE else place
    same = why.id if is_shown and why is not None else "exposed_comm"
    cost = min(late.lost_ns, step)
    advice = "Give the ranks equal work: the table of ranks shows in which bucket this one spends more than the others."
    if late.turns:
        advice = (
            "Give the ranks equal work in each step (batches of equal size or length), and look for what pauses a rank "
            "now and then: a slow batch, garbage collection, a checkpoint. The table stragglers has each step."
        )
    if why is not None:
        advice = f"On rank {late.rank}: {as_clause(why.title.rstrip('.'))}. {why.advice}"
    replaced = next((finding for finding in diagnosis.all_findings if finding.id == same), None)
    finding = Finding(
        "late_rank",
        late.sentence(place.at),
        cost,
        advice,
        share=cost / step,
        unprofiled=slower > 1,
        where=place,
        evidence=replaced.evidence if replaced is not None else (),
        link=_UNEVEN,
        overlaps=(same,) if replaced is not None else (),
        confidence="inferred",
    )
    other_findings = [*_without(diagnosis.all_findings, replaced, cost, step)]
    listed = sorted([finding, *other_findings], key=order)
    first = next(finding for finding in listed if finding.id in VERDICTS)
    if first is not finding:
        return replace(diagnosis, all_findings=listed)
    verdict = Verdict(finding.id, finding.title, finding.share, finding.where)
    return replace(diagnosis, verdict=verdict, all_findings=listed)


def _explaining(about: Diagnosis, late: Straggler) -> Finding | None:
    """The finding about the late rank that is about the bucket and large enough to explain what is lost."""
    ids = _EXPLAINING.get(BUCKETS[late.bucket].bound, ()) if late.bucket else ()
    enough = (
        finding
        for finding in about.findings
        if finding.id in ids and (finding.cost_ns or 0.0) >= _EXPLAINS * late.lost_ns
    )
    return next(enough, None)


def _without(findings: list[Finding], replaced: Finding | None, cost: float, step: float) -> Iterator[Finding]:
    """The findings, without the cost in the one that counts the same time; all together never exceed the step."""
    step_left_ns = step - cost
    for finding in findings:
        if finding.cost_ns is None:
            yield finding
            continue
        own_ns = max(finding.cost_ns - cost, 0.0) if finding is replaced else finding.cost_ns
        own_ns = min(own_ns, step_left_ns)
        step_left_ns -= own_ns
        overlaps = (
            tuple(dict.fromkeys((*finding.overlaps, "late_rank"))) if own_ns < finding.cost_ns else finding.overlaps
        )
        if own_ns > 0:
            yield replace(finding, cost_ns=own_ns, share=own_ns / step, overlaps=overlaps)
