"""Do ranks communicate without computing meanwhile, on a GPU or on a CPU?"""

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tracekit.findings import Finding, Where, evidence, rule
from tracekit.findings.counted import Steps
from tracekit.findings.kernels import kernels, time_of
from tracekit.findings.where import where_of_piece
from tracekit.intervals import Ints
from tracekit.kernel_names import short_kernel
from tracekit.profile import Profile
from tracekit.profile.collective_waits import BACKEND_SPAN
from tracekit.trace.enclosing import enclosing
from tracekit.trace.roles import USER
from tracekit.units import duration, many, percent

_DDP = "https://docs.pytorch.org/docs/stable/notes/ddp.html#internal-design"
_BACKEND = re.compile(r"(?:nccl|rccl|gloo|ucc|mpi|hccl|xccl):.*", re.DOTALL)  # annotations of torch.distributed
_FASTEST = 0.1  # of the calls of one collective: how long the transfer takes; the rest of the others is waiting
_MANY, _SHORT_NS = 30, 100_000  # collectives a step, and their median, that should travel together
_LATE = 0.5  # of their time: where more than that is waiting, ranks arrive late


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
    per_step, waiting = len(rows) / len(low), _waiting(profile, rows, kinds, profile.trace.links.launch(rows))
    yield Finding(
        "exposed_comm",
        f"The GPU communicates without computing for {duration(exposed, like=mean.step_ns)} of "
        f"{duration(mean.step_ns)} a step, {percent(exposed / running)} of its communication time: "
        f"{many(round(per_step, 1), 'collective')} a step; the costliest is {_called(collectives[worst])}; "
        f"{_said(waiting)}",
        claim=claim,
        where=collectives[worst],
        evidence=evidence(profile, rows[kinds == worst]),
        advice=_advice(waiting, per_step, float(np.median(profile.trace.dur_ns[rows]))),
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
        f"The host waits in collectives{where.at} for {duration(waited, like=mean.step_ns)} of "
        f"{duration(mean.step_ns)} a step: {many(round(per_step, 1), 'collective')} a step; the costliest is "
        f"{_called(where)}; {_said(waiting)}",
        claim=claim,
        where=where,
        evidence=evidence(profile, rows[kinds == worst]),
        advice=_advice(waiting, per_step, float(np.median(trace.dur_ns[rows]))),
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
    name = where.operator or short_kernel(where.kernel or "")
    return f"{name} in {where.module}" if where.module else name


def _waiting(profile: Profile, rows: Ints, kinds: Ints, started: Ints) -> float | None:
    """The share of the collectives' time that is waiting for other ranks; None where no collective recurs.

    `started` has for each of them the event that started it, which tells its step.

    The same collective is called once a step: the fastest tenth of its calls shows how long the transfer takes.
    """
    trace = profile.trace
    steps = trace.steps.of(trace.ts_ns[started])
    order = np.lexsort((rows, steps, kinds))
    first = np.concatenate(([True], (np.diff(kinds[order]) != 0) | (np.diff(steps[order]) != 0)))
    nth = np.arange(len(rows)) - np.maximum.accumulate(np.where(first, np.arange(len(rows)), 0))
    taken = waited = 0.0
    _, calls = np.unique(np.stack([kinds[order], nth], axis=1), axis=0, return_inverse=True)
    for call in range(int(calls.max()) + 1):
        dur = trace.dur_ns[rows[order[calls.ravel() == call]]]
        if len(dur) > 1:
            taken += float(dur.sum())
            waited += float(np.maximum(dur - np.quantile(dur, _FASTEST, method="lower"), 0).sum())
    return waited / taken if taken else None


def _said(waiting: float | None) -> str:
    if waiting is None:
        return "how much of this is waiting for other ranks cannot be known, because no collective is called twice"
    return (
        f"at least {percent(waiting)} of the collectives' time is waiting for other ranks (whatever each call takes "
        "beyond the fastest ones)"
    )


def _advice(waiting: float | None, per_step: float, median_ns: float) -> str:
    if per_step >= _MANY and median_ns < _SHORT_NS:
        return "Combine small collectives: use larger buckets (bucket_cap_mb), or one flattened tensor."
    if waiting is not None and waiting > _LATE:
        return (
            "Give the ranks equal work: most of this time is spent waiting for the last rank to arrive. Its trace "
            "shows what delays it."
        )
    return (
        "Start communicating earlier, while the backward pass computes (DDP's buckets, FSDP's prefetch), or send less: "
        "synchronise less often (no_sync), or use a communication hook that compresses or sends half precision."
    )
