"""Do ranks communicate without computing meanwhile, on a GPU or on a CPU?"""

import re
from collections import Counter
from collections.abc import Hashable, Iterator
from dataclasses import replace

import numpy as np

from tracekit.findings import Finding, Where, evidence, rule
from tracekit.findings.collective_advice import Spent, advice, as_ranks_wait
from tracekit.findings.counted import Steps
from tracekit.findings.kernels import kernels, time_of
from tracekit.findings.where import where_of_piece
from tracekit.intervals import Ints
from tracekit.kernel_names import short_kernel
from tracekit.profile import Profile
from tracekit.profile.collective_waits import BACKEND_SPAN
from tracekit.trace.collective_arguments import collective_arguments
from tracekit.trace.collective_kinds import kind_of
from tracekit.trace.enclosing import enclosing
from tracekit.trace.roles import USER
from tracekit.units import duration, many, percent

_DDP = "https://docs.pytorch.org/docs/stable/notes/ddp.html#internal-design"
_BACKEND = re.compile(r"(?:nccl|rccl|gloo|ucc|mpi|hccl|xccl):.*", re.DOTALL)  # annotations of torch.distributed
_FASTEST = 0.1  # of equal collectives: how long the transfer takes; the rest of the others is waiting
_ESTIMATE = re.compile(r"(?:How much of this|No waiting for|At least).*(?:are equal|collectives show|equal ones\))\.")
_TOLD = 0.001  # of their time: less is not told


@rule("exposed_comm")
def exposed_comm(profile: Profile) -> Iterator[Finding]:
    """`exposed_comm`: how much communication nothing overlaps, and how much is waiting for ranks that arrive late."""
    if profile.trace.device == "cpu":
        yield from _on_a_cpu(profile)
        return
    mean, pieces = profile.means["wall"], profile.attribution.pieces
    chosen = pieces.of("gpu_comm")
    if mean is None or not (chosen & profile.counted[pieces.step]).any():
        return
    claim = pieces.union(chosen)
    rows = kernels(profile, lambda events: events.roles.communication)
    events = profile.trace.events_at(rows)
    kinds, collectives = _kinds(profile, rows)
    worst = int(np.bincount(kinds, claim.within(events.ts_ns, events.end_ns)).argmax())
    steps = Steps.of(profile)
    low, high = steps.low, steps.high
    exposed, running = (float(union.within(low, high).mean()) for union in (claim, time_of(profile, rows)))
    started = profile.trace.links.launch(rows)
    per_step, waiting = len(rows) / len(low), _waiting(profile, rows, kinds, started)
    yield Finding(
        "exposed_comm",
        f"Exposed communication, most of all {_called(collectives[worst])}",
        why=f"The GPU communicates without computing for {duration(exposed, like=mean.step_ns)} of "
        f"{duration(mean.step_ns)} a step: {percent(exposed / running)} of its communication time, in "
        f"{many(round(per_step, 1), 'collective')} a step. {_said(waiting)}.",
        claim=claim,
        where=collectives[worst],
        evidence=evidence(profile, rows[kinds == worst]),
        do=advice(
            profile,
            kind_of(_name(collectives[worst])),
            rows,
            started[kinds == worst],
            Spent(mean.step_ns, running, exposed, waiting),
        ),
        link=_DDP,
    )


def _on_a_cpu(profile: Profile) -> Iterator[Finding]:
    mean, trace, pieces = profile.means["wall"], profile.trace, profile.attribution.pieces
    claim, steps = profile.waits_in_collectives, Steps.of(profile)
    waited = steps.mean(claim)
    if mean is None or not waited:
        return
    spans = trace.labels.fits(BACKEND_SPAN)
    rows = trace.where(lambda part: (part.roles.kind == USER) & spans[part.name_codes])
    rows = rows[profile.in_counted(trace.steps.of(trace.ts_ns[rows]))]
    names, kinds = np.unique(trace.name_codes[rows], return_inverse=True)
    worst = int(np.bincount(kinds, claim.within(trace.ts_ns[rows], trace.ts_ns[rows] + trace.dur_ns[rows])).argmax())
    in_step = np.flatnonzero(profile.counted[pieces.step])
    longest = int(in_step[claim.within(pieces.start[in_step], pieces.end[in_step]).argmax()])
    where = replace(where_of_piece(profile, longest), operator=trace.names[names[worst]])
    per_step, waiting = len(rows) / profile.counted_steps, _waiting(profile, rows, kinds, rows)
    yield Finding(
        "exposed_comm",
        f"The host waits in collectives{where.at}, most of all {_called(where)}",
        why=f"It waits for {duration(waited, like=mean.step_ns)} of {duration(mean.step_ns)} a step, in "
        f"{many(round(per_step, 1), 'collective')} a step. {_said(waiting)}.",
        claim=claim,
        where=where,
        evidence=evidence(profile, rows[kinds == worst]),
        do=advice(
            profile, kind_of(_name(where)), rows, rows[kinds == worst], Spent(mean.step_ns, waited, waited, waiting)
        ),
        link=_DDP,
        confidence="inferred",
    )


def _kinds(profile: Profile, rows: Ints) -> tuple[Ints, list[Where]]:
    """Which collective each kernel belongs to – by kernel, the backend's annotation, and the span that the program
    named around it – and what these collectives are."""
    trace = profile.trace
    launches = trace.links.launch(rows)
    backend = trace.labels.fits(_BACKEND)
    around = [
        enclosing(trace, launches, lambda part: (part.roles.kind == USER) & backend[part.name_codes]),
        enclosing(
            trace, launches, lambda part: (part.roles.kind == USER) & ~part.roles.step & ~backend[part.name_codes]
        ),
    ]
    names = [np.where(each >= 0, trace.name_codes[np.maximum(each, 0)], -1) for each in around]
    keys, kinds = np.unique(np.stack([trace.name_codes[rows], *names], axis=1), axis=0, return_inverse=True)
    texts = [[trace.names[code] if code >= 0 else None for code in key] for key in keys.tolist()]
    return kinds.ravel(), [Where(kernel=kernel, operator=call, module=span) for kernel, call, span in texts]


def _called(where: Where) -> str:
    return f"{_name(where)} in {where.module}" if where.module else _name(where)


def _name(where: Where) -> str:
    return where.operator or short_kernel(where.kernel or "")


def _waiting(profile: Profile, rows: Ints, kinds: Ints, started: Ints) -> float | None:
    """The share of the collectives' time that is known to be waiting for other ranks; None where no two are equal.

    `started` has for each of them the event that started it, which tells its step. Equal are those of the same kind,
    group and size, or where sizes are not recorded, those at the same place in their steps. They need the same time to
    transfer what they transfer: the fastest tenth of them shows how long.
    """
    trace = profile.trace
    steps = trace.steps.of(trace.ts_ns[started])
    places: Counter[tuple[int, int]] = Counter()
    equal: dict[Hashable, list[int]] = {}
    for index, said in enumerate(collective_arguments(trace, rows, rank=0, world_size=None)):
        at = int(kinds[index]), int(steps[index])
        by_place = (at[0], places[at])
        places[at] += 1
        by_size = (said.kind, said.group, said.size_bytes)
        equal.setdefault(by_place if said.size_bytes is None else by_size, []).append(int(rows[index]))
    calls = [trace.dur_ns[some] for some in equal.values() if len(some) > 1]
    waited = sum(float(np.maximum(dur - np.quantile(dur, _FASTEST, method="lower"), 0).sum()) for dur in calls)
    return waited / float(trace.dur_ns[rows].sum()) if calls else None


def _said(waiting: float | None) -> str:
    if waiting is None:
        return "How much of this is waiting for other ranks cannot be known, because no two collectives are equal"
    if waiting < _TOLD:
        return "No waiting for other ranks is known, as far as equal collectives show"
    return (
        f"At least {percent(waiting)} of the collectives' time is waiting for other ranks (estimated as time above the "
        "fastest of equal ones)"
    )


def as_all_ranks_show(finding: Finding, waiting: float) -> Finding:
    """The finding with the share of the collectives' time that is waiting, which one rank can only estimate."""
    known = f"{percent(waiting)} of the collectives' time is waiting for other ranks."
    return replace(finding, why=_ESTIMATE.sub(known, finding.why), do=as_ranks_wait(finding.do, waiting))
