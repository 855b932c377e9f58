"""Do ranks communicate without computing meanwhile, on a GPU or on a CPU; and why: collectives that begin late, buffers
that are broadcast before each forward pass? What to do depends on the kind of collective, and on who starts it.
"""

import re
from collections import Counter
from collections.abc import Hashable, Iterator

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tracekit.base.intervals import Ints, Union
from tracekit.base.pages import Cure
from tracekit.base.units import duration, many, percent
from tracekit.findings import Finding, FindingPage, Where, evidence, rule
from tracekit.findings.counted import Steps
from tracekit.findings.culprits import plain, where_of_piece
from tracekit.findings.kernels import kernels, time_of
from tracekit.profile import Profile
from tracekit.profile.cached import BACKEND_SPAN
from tracekit.trace.collectives import collective_arguments, kind_of
from tracekit.trace.roles import USER
from tracekit.trace.rows import enclosing
from tracekit.vocabulary.kernel_names import kernel_in_prose

_MANY_COLLECTIVES, _SHORT_NS = 30, 100_000  # collectives a step, and their median, that should travel together
_LATE = 0.5  # of their time: where more than that is waiting, ranks arrive late
_SOME_LATE = 0.2  # of their time: where more than that is waiting, the advice mentions it
_ROOM = 0.5  # of what nothing overlaps: where the rest of the step is shorter than that, it cannot hide it
_NCCL = re.compile(r"(?:nccl|rccl).*", re.DOTALL)  # kernels and annotations
_DDP = re.compile(r".*(?:DistributedDataParallel|(?:ddp\.|::)reducer).*", re.DOTALL)
_FSDP = re.compile(r".*(?:FullyShardedDataParallel|FSDP|fully_shard).*", re.DOTALL)
_SHARDING = ("all_gather", "reduce_scatter")
_COMBINE = "Combine small collectives"
_EQUAL_WORK = (
    "Give the ranks equal work: most of this time is spent waiting for the last rank to arrive. Its trace shows what "
    "delays it."
)
_MORE_EQUAL = "Give the ranks equal work, too: part of this time is spent waiting for the last rank to arrive."
_ALIKE = (
    "Compare its bus bandwidth with that of nccl-tests (on AMD, rccl-tests) on the same machine first: a slow network "
    "and ranks that come late look alike in the trace of one rank. "
)
_AT_ONCE = (
    "Start it as soon as its input is ready (async_op=True), and wait only where its result is needed, so that "
    "something else computes meanwhile; or send less, for example in half precision."
)
# By who starts it, and when: how it may run beside computing, and how to send less, as the end of a sentence.
_REMEDIES = {
    "DDP": (
        "Let more of it run beside the backward pass, with smaller buckets (bucket_cap_mb), or send less: "
        "compress or halve what is sent (register_comm_hook); where gradients of several micro-batches are "
        "added up, synchronise only in the last of them (no_sync).",
        ": compress or halve what is sent (register_comm_hook), and where gradients of several micro-batches "
        "are added up, synchronise only in the last of them (no_sync)",
    ),
    "backward": (
        "Start it earlier in the backward pass, as soon as a gradient is there (as DistributedDataParallel does), "
        "or send less: in half precision, or only once for all micro-batches.",
        ": in half precision, or only once for all micro-batches",
    ),
    "FSDP": (
        "Gather the next shard while this one computes (FSDP's forward_prefetch and backward_prefetch), keep "
        "parameters from forward to backward if they fit (reshard_after_forward=False), or send half precision "
        "(MixedPrecision).",
        ": keep parameters from forward to backward if they fit (reshard_after_forward=False), or send half "
        "precision (MixedPrecision)",
    ),
    "other": (_AT_ONCE, ", for example in half precision"),
}
_DDP_DESIGN_PAGE = "https://docs.pytorch.org/docs/stable/notes/ddp.html#internal-design"
_BACKEND = re.compile(r"(?:nccl|rccl|gloo|ucc|mpi|hccl|xccl):.*", re.DOTALL)  # annotations of torch.distributed
_FASTEST = 0.1  # of equal collectives: how long the transfer takes; the rest of the others is waiting
_ESTIMATE = re.compile(r"(?:How much of this|No waiting for|At least).*(?:are equal|collectives show|equal ones\))\.")
_MIN_SHARE_TO_REPORT = 0.001  # of their time: less is not told
_FORWARD = re.compile(r"DistributedDataParallel\.forward")
_BROADCAST = re.compile(r"c10d::broadcast_|(nccl|rccl|xccl|hccl):_?broadcast.*")
_DDP_CLASS_PAGE = "https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html"
_USUAL_NS = 50_000  # for the event that a stream waits for, and the launch itself
_MIN_BUSY_SHARE = 0.5  # of the time: else it is not other kernels that the collective waits for
_NCCL_PAGE = "https://docs.pytorch.org/docs/stable/torch_nccl_environment_variables.html"


class Spent(Struct, frozen=True):
    """What collectives take of a step, ns, and the share of it that is waiting for other ranks; None where it is not
    known."""

    step_ns: float
    running_ns: float
    exposed_ns: float  # that nothing overlaps
    waiting: float | None


def advice(profile: Profile, kind: str, rows: Ints, started: Ints, times: Spent) -> str:
    """What to do about the collectives in `rows`, most of which are of that kind.

    `started` has for each of them the event that started it.
    """
    if len(rows) >= _MANY_COLLECTIVES * profile.counted_steps and np.median(profile.trace.dur_ns[rows]) < _SHORT_NS:
        buckets = "larger buckets (bucket_cap_mb)" if _has(profile, _DDP) else "one flattened tensor for many"
        return f"{_COMBINE}: use {buckets}."
    if times.waiting is not None and times.waiting > _LATE:
        return _EQUAL_WORK
    sooner, how_to_send_less = _REMEDIES[_starter(profile, kind, started)]
    room_ns = max(times.step_ns - times.running_ns, 0.0)
    if room_ns < _ROOM * times.exposed_ns:
        hidden = f"At most {duration(room_ns)} more of it can be hidden beside the rest of a step"
        by_nccl = profile.trace.census.any(lambda roles: roles.named(_NCCL))
        return f"{_ALIKE if by_nccl else ''}{hidden}; beyond that, send less{how_to_send_less}."
    return sooner


def as_ranks_wait(advised: str, waiting: float) -> str:
    """That advice, or what fits better where all ranks show that so much of the time is waiting."""
    if advised.startswith(_COMBINE):
        return advised
    if waiting > _LATE:
        return _EQUAL_WORK
    sooner = _AT_ONCE if advised == _EQUAL_WORK else advised.removeprefix(_ALIKE)
    return f"{sooner} {_MORE_EQUAL}" if waiting > _SOME_LATE else sooner


def _starter(profile: Profile, kind: str, started: Ints) -> str:
    """Which of `_REMEDIES` are for collectives of that kind, which these events started."""
    trace, started = profile.trace, started[started >= 0]
    if kind == "all_reduce":
        # In backward's thread, or inside of an operator of backward.
        helping = np.isin(trace.track[started], np.array(trace.threads.helpers, np.int64))
        in_node = enclosing(trace, started, lambda part: part.roles.backward_node) >= 0
        if 2 * (helping | in_node).sum() > len(started):
            return "DDP" if _has(profile, _DDP) else "backward"
    return "FSDP" if kind in _SHARDING and _has(profile, _FSDP) else "other"


def _has(profile: Profile, pattern: re.Pattern[str]) -> bool:
    return bool(profile.trace.labels.fits(pattern).any())


_EXPOSED_PAGE = FindingPage(
    "exposed_comm",
    "Communication that no computation overlaps",
    says="""The GPU only communicates: kernels of collectives run, and no other kernel does. On a CPU, the host waits
        in a collective. The finding names the collective that is exposed most, and says how much of the collectives'
        time is waiting for other ranks, as far as that can be told.""",
    slow="""A collective ends when the last rank has arrived and all data is sent. While nothing else is there to
        compute, each rank pays for the network, and for the slowest of them.""",
    cost="""It claims the bucket `gpu_comm`; on a CPU, the time in collectives of the backend. The waiting is
        estimated from equal collectives (of one kind, group and size, or at one place in their steps): what they take
        beyond the fastest tenth. With the traces of all ranks it is measured.""",
    limits="""From one rank, a slow network and ranks that come late look alike, and the estimate is a lower bound: if
        every rank is late each time, even the fastest collective has waited. Give `tracekit report` the traces of all
        ranks.""",
    cures=(
        Cure(
            "Give the ranks equal work, if most of it is waiting: batches of equal size, a balanced partition.",
            "results",
        ),
        Cure(
            "Start collectives earlier (`async_op=True`, smaller `bucket_cap_mb`, FSDP's prefetching).",
            "rounding",
        ),
        Cure("Send fewer, larger messages: larger buckets, one flattened tensor.", "rounding"),
        Cure("Send less: half precision, compression (`register_comm_hook`).", "results"),
        Cure("Synchronise once for all micro-batches whose gradients are accumulated (`no_sync`).", "rounding"),
    ),
    links=(_DDP_DESIGN_PAGE,),
)


@rule("exposed_comm", pages=(_EXPOSED_PAGE,))
def exposed_comm(profile: Profile) -> Iterator[Finding]:
    """`exposed_comm`: how much communication nothing overlaps, and how much is waiting for ranks that arrive late."""
    if profile.trace.device == "cpu":
        yield from _on_a_cpu(profile)
        return
    mean, pieces = profile.means["wall"], profile.attribution.pieces
    is_exposed = pieces.of("gpu_comm")
    if mean is None or not (is_exposed & profile.counted[pieces.step]).any():
        return
    claim = pieces.union(is_exposed)
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
        f"{many(round(per_step, 1), 'collective')} a step. {_waiting_sentence(waiting)}.",
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
        link=_DDP_DESIGN_PAGE,
    )


def _on_a_cpu(profile: Profile) -> Iterator[Finding]:
    mean, trace, pieces = profile.means["wall"], profile.trace, profile.attribution.pieces
    claim, steps = profile.waits_in_collectives, Steps.of(profile)
    waited = steps.mean(claim)
    if mean is None or not waited:
        return
    rows = trace.where(lambda part: (part.roles.kind == USER) & part.roles.named(BACKEND_SPAN))
    rows = rows[profile.begins_in_counted(rows)]
    names, kinds = np.unique(trace.name_codes[rows], return_inverse=True)
    worst = int(np.bincount(kinds, claim.within(trace.ts_ns[rows], trace.ts_ns[rows] + trace.dur_ns[rows])).argmax())
    in_step = np.flatnonzero(profile.counted[pieces.step])
    longest = int(in_step[claim.within(pieces.start[in_step], pieces.end[in_step]).argmax()])
    location = replace(where_of_piece(profile, longest), operator=trace.names[names[worst]])
    per_step, waiting = len(rows) / profile.counted_steps, _waiting(profile, rows, kinds, rows)
    yield Finding(
        "exposed_comm",
        f"The host waits in collectives{location.at}, most of all {_called(location)}",
        why=f"It waits for {duration(waited, like=mean.step_ns)} of {duration(mean.step_ns)} a step, in "
        f"{many(round(per_step, 1), 'collective')} a step. {_waiting_sentence(waiting)}.",
        claim=claim,
        where=location,
        evidence=evidence(profile, rows[kinds == worst]),
        do=advice(
            profile, kind_of(_name(location)), rows, rows[kinds == worst], Spent(mean.step_ns, waited, waited, waiting)
        ),
        link=_DDP_DESIGN_PAGE,
        confidence="inferred",
    )


def _kinds(profile: Profile, rows: Ints) -> tuple[Ints, list[Where]]:
    """Which collective each kernel belongs to – by kernel, the backend's annotation, and the span that the program
    named around it – and what these collectives are."""
    trace = profile.trace
    launches = trace.links.launch(rows)
    spans_around = [
        enclosing(trace, launches, lambda part: (part.roles.kind == USER) & part.roles.named(_BACKEND)),
        enclosing(
            trace,
            launches,
            lambda part: (part.roles.kind == USER) & ~part.roles.step & ~part.roles.named(_BACKEND),
        ),
    ]
    names = [np.where(spans >= 0, trace.name_codes[np.maximum(spans, 0)], -1) for spans in spans_around]
    keys, kinds = np.unique(np.stack([trace.name_codes[rows], *names], axis=1), axis=0, return_inverse=True)
    texts = [[trace.names[code] if code >= 0 else None for code in key] for key in keys.tolist()]
    return kinds.ravel(), [Where(kernel=kernel, operator=call, module=span) for kernel, call, span in texts]


def _called(collective: Where) -> str:
    return f"{_name(collective)} in {plain(collective.module)}" if collective.module else _name(collective)


def _name(collective: Where) -> str:
    return collective.operator or kernel_in_prose(collective.kernel or "")


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
    for index, collective in enumerate(collective_arguments(trace, rows, rank=0, world_size=None)):
        kind_and_step = int(kinds[index]), int(steps[index])
        by_place = (kind_and_step[0], places[kind_and_step])
        places[kind_and_step] += 1
        by_size = (collective.kind, collective.group, collective.size_bytes)
        equal.setdefault(by_place if collective.size_bytes is None else by_size, []).append(int(rows[index]))
    calls = [trace.dur_ns[equal_rows] for equal_rows in equal.values() if len(equal_rows) > 1]
    waited = sum(float(np.maximum(dur - np.quantile(dur, _FASTEST, method="lower"), 0).sum()) for dur in calls)
    return waited / float(trace.dur_ns[rows].sum()) if calls else None


def _waiting_sentence(waiting: float | None) -> str:
    if waiting is None:
        return "How much of this is waiting for other ranks cannot be known, because no two collectives are equal"
    if waiting < _MIN_SHARE_TO_REPORT:
        return "No waiting for other ranks is known, as far as equal collectives show"
    return (
        f"At least {percent(waiting)} of the collectives' time is waiting for other ranks (estimated as time above the "
        "fastest of equal ones)"
    )


def as_all_ranks_show(finding: Finding, waiting: float) -> Finding:
    """The finding with the share of the collectives' time that is waiting, which one rank can only estimate."""
    sentence = f"{percent(waiting)} of the collectives' time is waiting for other ranks."
    return replace(finding, why=_ESTIMATE.sub(sentence, finding.why), do=as_ranks_wait(finding.do, waiting))


_BROADCAST_PAGE = FindingPage(
    "buffer_broadcast",
    "DistributedDataParallel broadcasts its buffers",
    says="""Broadcasts are launched inside the forward of DistributedDataParallel, and while they run, the GPU computes
        nothing. DDP sends all buffers of the first rank, such as running statistics of BatchNorm, before each forward
        pass unless told otherwise.""",
    slow="Each broadcast waits for the first rank, and forward cannot begin before it has ended.",
    cost="It claims the time of these broadcasts in the bucket `gpu_comm`, which `exposed_comm` claims as well.",
    limits="Whether your training needs equal buffers on all ranks, a trace cannot tell.",
    cures=(
        Cure(
            """Pass `broadcast_buffers=False`: each rank keeps buffers of its own, and evaluation and checkpoints use
            those of the rank that makes them.""",
            "results",
        ),
        Cure("Use `SyncBatchNorm`, which agrees on statistics anyway, and switch the broadcast off.", "results"),
    ),
    links=(_DDP_CLASS_PAGE,),
)


@rule("buffer_broadcast", pages=(_BROADCAST_PAGE,))
def buffer_broadcast(profile: Profile) -> Iterator[Finding]:
    """`buffer_broadcast`, which is not one of `VERDICTS`: broadcasts inside of DDP's forward, as far as exposed."""
    pieces = profile.attribution.pieces
    rows = kernels(profile, lambda events: events.roles.communication)
    for pattern in (_FORWARD, _BROADCAST):
        rows = _launched_in(profile, rows, pattern)
    if not len(rows):
        return
    steps = Steps.of(profile)
    claim = time_of(profile, rows).common(pieces.union(pieces.of("gpu_comm")))
    yield Finding(
        "buffer_broadcast",
        "DistributedDataParallel broadcasts its buffers before each forward pass",
        why=f"{many(round(len(rows) / len(steps.low), 1), 'broadcast')} a step, during which the GPU computes nothing "
        f"for {duration(steps.mean(claim))}.",
        do="Pass broadcast_buffers=False: each rank then keeps buffers of its own, such as the running statistics "
        "of BatchNorm (or use SyncBatchNorm, which agrees on them anyway).",
        where=Where(operator="c10d::broadcast_", module="DistributedDataParallel"),
        evidence=evidence(profile, rows),
        link=_DDP_CLASS_PAGE,
        claim=claim,
    )


def _launched_in(profile: Profile, rows: Ints, name: re.Pattern[str]) -> Ints:
    """Those of these kernels that are launched in an event of such a name."""
    launches = profile.trace.links.launch(rows)
    return rows[enclosing(profile.trace, launches, lambda part: part.roles.host & part.roles.named(name)) >= 0]


_LATE_PAGE = FindingPage(
    "late_collectives",
    "Collectives begin late on a busy GPU",
    says="""A collective begins more than 50 µs after it could have: its launch has returned, and all that was
        submitted before it is done. Meanwhile kernels of other streams fill the GPU for at least half of the time.""",
    slow="A collective that is late ends late, and what needs its result waits; on other ranks, too.",
    cost="""It claims the exposed time at the end of such a collective (bucket `gpu_comm`), for at most as long as it
        was late.""",
    limits="""It is inferred: that the collective waited for a place on the GPU is not recorded. Collectives inside
        CUDA graphs are left out, since all kernels of a graph are submitted at once.""",
    cures=(
        Cure(
            """Give collectives priority: `TORCH_NCCL_HIGH_PRIORITY=1`, or
            `ProcessGroupNCCL.Options(is_high_priority_stream=True)` for `init_process_group`.""",
            "changes nothing",
        ),
    ),
    links=(_NCCL_PAGE,),
)


@rule("late_collectives", pages=(_LATE_PAGE,))
def late_collectives(profile: Profile) -> Iterator[Finding]:
    """`late_collectives`, which is not one of `VERDICTS`: the exposed time that beginning when ready would save."""
    trace, pieces = profile.trace, profile.attribution.pieces
    rows = kernels(profile, lambda events: events.roles.communication)
    late = _late_ns(profile, rows)
    rows, late = rows[late > _USUAL_NS], late[late > _USUAL_NS]
    if not len(rows):
        return
    start = trace.ts_ns[rows]
    computing = time_of(profile, kernels(profile, lambda events: ~events.roles.communication))
    crowded = computing.within(start - late, start) >= _MIN_BUSY_SHARE * late
    rows, late = rows[crowded], late[crowded]
    if not len(rows):
        return
    end = trace.ts_ns[rows] + trace.dur_ns[rows]
    claim = Union.of(end - np.minimum(late, trace.dur_ns[rows]), end).common(pieces.union(pieces.of("gpu_comm")))
    number = many(round(len(rows) / len(Steps.of(profile).low), 1), "collective")
    yield Finding(
        "late_collectives",
        "Collectives begin late on a busy GPU",
        why=f"{number} a step could begin earlier, by {duration(float(late.max()))} at most: all that was submitted "
        "before is done, but kernels of other streams keep the GPU busy.",
        do="Let collectives go first: TORCH_NCCL_HIGH_PRIORITY=1, or "
        "ProcessGroupNCCL.Options(is_high_priority_stream=True) for init_process_group.",
        where=Where(kernel=trace.name(rows[late.argmax()])),
        evidence=evidence(profile, rows),
        link=_NCCL_PAGE,
        claim=claim,
        confidence="inferred",
    )


def _late_ns(profile: Profile, rows: Ints) -> Ints:
    """How long after it could have begun each of these kernels begins.

    A kernel can wait for nothing but its launch and what was submitted before it. Of CUDA graphs nothing is known,
    since all their kernels are submitted at once.
    """
    trace = profile.trace
    activities = kernels(profile, lambda events: events.roles.gpu)
    launches, of_rows = trace.links.launch(activities), trace.links.launch(rows)
    activities, launches = activities[launches >= 0], launches[launches >= 0]
    submitted = trace.ts_ns[launches]
    order = np.argsort(submitted, kind="stable")
    done_ns = np.maximum.accumulate((trace.ts_ns[activities] + trace.dur_ns[activities])[order])
    before = np.searchsorted(submitted[order], trace.ts_ns[of_rows]) - 1
    earlier = np.where(before >= 0, done_ns[np.maximum(before, 0)] if len(done_ns) else 0, 0)
    ready = np.maximum(earlier, trace.ts_ns[of_rows] + trace.dur_ns[of_rows])
    has_own_launch = (of_rows >= 0) & ~trace.events_at(np.maximum(of_rows, 0)).roles.graph_launch
    return np.where(has_own_launch, np.maximum(trace.ts_ns[rows] - ready, 0), 0).astype(np.int64)
