"""Does the loop wait for its next batch, and why does the loader take so long?"""

import math
import re
from collections.abc import Iterator
from functools import cached_property

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tracekit.base.intervals import Bools, Ints
from tracekit.base.pages import Cure
from tracekit.base.units import count, duration, many, percent
from tracekit.engine.buckets import WALL
from tracekit.findings import Finding, FindingPage, Where, evidence, late_batches, rule
from tracekit.findings.culprits import Culprit, by_name, plain, shares_of_buckets, where_of_event
from tracekit.profile import LEAST_SHARE, Profile
from tracekit.trace.roles import DATALOAD, OPERATOR, PYTHON
from tracekit.trace.rows import Events, enclosing, outermost

_MIN_SHARE_TO_NAME = 0.1  # of the wait: what takes less is not named
_OF_A_LINE = 0.2  # of the wait: a line with less is not named
_WORTH_A_WORKER = 0.1  # of what a step takes without the wait: a shorter wait needs no whole worker
_STEADY = 0.5  # of the steps: if workers are late so often, there are too few; if less often, they are still starting
_NOTICED = 0.1  # of the mean wait of a step: as long a wait counts
_COLLATES = re.compile(r"aten::(?:stack|_?cat)|.*collat.*", re.DOTALL | re.IGNORECASE)
_MAKES_A_TENSOR = re.compile(r"aten::(?:stack|cat)")
_RECEIVES_A_TENSOR = re.compile(
    r".*torch[/\\]multiprocessing[/\\]reductions\.py\(\d+\): rebuild_\w+", re.DOTALL
)  # what calls it is a method of C, which has no file
_AS_MANY_AS_CORES = 16  # more workers are no advice for a usual machine
_PINNED_COPY = re.compile(r"Memcpy HtoD \(Pinned.*", re.DOTALL)
_LINK = "https://docs.pytorch.org/docs/stable/data.html#single-and-multi-process-data-loading"
_OTHER_PROCESSES = (
    "Load in other processes (DataLoader(num_workers=…, persistent_workers=True, prefetch_factor=…)), so that the next "
    "batch is made while the current one is worked on."
)
_ENOUGH_WORKERS = "If a worker makes a batch as fast as the loop does now, {workers} will keep up."
_MORE_WORKERS = (
    "Use more workers (num_workers), up to the number of cores, let them work further ahead (prefetch_factor), and "
    "keep them alive between epochs (persistent_workers=True)."
)
_FURTHER_AHEAD = (
    "Let the workers, which nearly keep up, work further ahead (prefetch_factor), and keep them alive between epochs "
    "(persistent_workers=True)."
)
_SOMETIMES = (
    "Capture it with tracekit (tracekit capture, or tracekit.record), so that the workers record which batches are "
    "slow, and at which line; meanwhile, let them work further ahead (prefetch_factor)."
)
_START = (
    "Keep the workers alive between epochs (persistent_workers=True), and leave the first step out of what you measure."
)
# Through shared memory, from a worker to the loop: two tensors took 1.0 to 1.2 ms on two cores.
_SENDING_NS = 600_000  # a tensor
_TENSORS = 2  # of a batch, at least: an input and a target
_RECEIVING = 0.5  # of the wait: then it is no worker that is late
_CHEAPER = (
    "Use larger batches, fetch all samples of one in a single call (__getitems__ of the dataset), or keep the data as "
    "tensors on the device and index them there."
)
_NO_WORKERS = (
    "Keep num_workers=0: making a batch takes {making}, and a worker would have to send it, which takes about "
    f"{{sending}} (estimated). {_CHEAPER}"
)
_RECEIVES = f"Try num_workers=0: more workers do not make it faster to receive a batch. {_CHEAPER}"
_MAY_RECEIVE = (
    "Compare with num_workers=0 first: receiving a batch from a worker takes about {sending} (estimated), which more "
    f"workers do not shorten. {_CHEAPER}"
)
_ONCE = "What does not change from epoch to epoch can be done once, before the loop."
_COLLATING = "Collating is part of it: collate fewer, larger tensors, or store them batched."


_PAGE = FindingPage(
    "dataloader_bound",
    "The loop waits for its next batch",
    says="""For at least 2 % of a step, the training loop waits for its next batch while the GPU is idle (or, on a CPU,
        nothing computes): it is inside the annotation `enumerate(DataLoader)…`, which PyTorch writes around each
        request. The finding says whether batches are made in the training process itself (`num_workers=0`) or by
        workers. In a recording of tracekit's own, workers record themselves; then it says which of these it is: one
        worker is slow, and at which line; all are busy, and how many would keep up; pickling, sending and receiving a
        batch takes longer than making it; single batches are larger, or slow; the queue was full while the loop was
        slow; the loop's own sampler takes the time; or batches that were sent reach the loop late.""",
    slow="""Until the batch is there, the loop launches nothing, and the GPU runs dry. In training a GNN, the time
        often goes to sampling neighbours, to slicing features, and to collating many small graphs, all of it on the
        CPU.""",
    cost="""It claims the bucket `dataload`. The number of workers that would keep up is what a step takes with the
        wait divided by what it takes without or, where workers recorded themselves, the time in which one makes a
        batch divided by the time in which the loop works on one and receives it; that assumes a core for each of
        them.""",
    limits="""In a trace that another profiler took, nothing is known of what workers do in their own processes, nor how
        many there are; what it takes to send a batch from one is estimated, at 0.6 ms a tensor; where making a batch
        takes no longer, the advice is to keep `num_workers=0`, and on another machine that may be wrong. Where workers
        recorded themselves, their lines are samples, at most 200 a second: a line that holds Python's lock is seen when
        it lets it go, and one between two calls of C may be taken for the call after it. Only torch's own DataLoader is
        recorded, and no worker that began before the recording did. A loop that draws batches without PyTorch's
        DataLoader has no such annotation: its wait is reported as `python_bound` or `idle_unexplained`.""",
    cures=(
        Cure(
            """Load in other processes: `DataLoader(num_workers=…, persistent_workers=True, prefetch_factor=…)`; PyG's
            loaders take the same arguments. Workers draw random numbers of their own.""",
            "results",
        ),
        Cure(
            "Do once, before the loop, what is the same in every epoch: transforms, norms, conversions.",
            "changes nothing",
        ),
        Cure("Keep features, and the graph if it fits, on the GPU, and index them there.", "memory"),
        Cure("Use larger batches, so that fewer are collated.", "results"),
    ),
    links=(_LINK,),
)


@rule("data_loading", pages=(_PAGE,))
def data_loading(profile: Profile) -> Iterator[Finding]:
    """`dataloader_bound`: the loader runs in the training process, has too few workers, or is only starting them."""
    mean = profile.mean
    if mean is None or mean.parts["dataload"] < LEAST_SHARE * mean.step_ns:
        return
    waits = _Waits(profile, mean.parts["dataload"], mean.step_ns)
    explanation = None if waits.in_process else late_batches.explained(profile)
    if waits.in_process:
        reason, advice = _in_process(waits)
    elif explanation is not None:
        reason, advice = late_batches.why(explanation), late_batches.advice(explanation, copies_pinned(profile))
    else:
        reason, advice = _of_workers(waits)
    culprit = waits.culprits[0] if waits.in_process and waits.culprits else None  # with workers, the loop only waits
    row = int(culprit.rows[0]) if culprit is not None else int(waits.spans[0]) if len(waits.spans) else -1
    name = plain(culprit.name) if culprit is not None else waits.loader
    location, lines = _line_of_wait(profile, row, name)
    if waits.in_process:
        advice = _line_to_change(profile, location) + advice
    if explanation is not None and (place := late_batches.line_to_change(explanation)) is not None:
        location = replace(location, file=place.file, line=place.line, function=place.function)
    yield Finding(
        "dataloader_bound",
        f"Data loader: the loop waits for its next batch{lines}",
        why=f"It waits {duration(waits.step_ns)} a step{reason}.",
        do=advice,
        where=location,
        evidence=evidence(profile, culprit.rows if culprit is not None else waits.spans),
        link=_LINK,
        claim=profile.attribution.pieces.union(waits.is_waiting),
    )


def copies_pinned(profile: Profile) -> bool:
    """Whether anything is copied to a GPU from pinned memory: otherwise, no loader pins its batches to any end."""
    return profile.trace.census.any(lambda roles: roles.gpu & roles.named(_PINNED_COPY))


def _line_to_change(profile: Profile, slow: Where) -> str:
    """The dataset's line that takes most of the wait, to begin an advice with; empty if only a line of the loop is
    known, which works at other times, too."""
    others = shares_of_buckets(profile, *(bucket for bucket in WALL if bucket != "dataload"))
    if not slow.line or any((slow.file, slow.function) == (other.file, other.function) for other, _ in others):
        return ""
    function = plain(slow.function) if slow.function else "the line"
    return f"Make {function}{slow.at} cheaper first: it has the largest part of the wait. "


def _line_of_wait(profile: Profile, row: int, name: str | None) -> tuple[Where, str]:
    """Where the loop waits: the line with most of the wait, and as the end of a clause all that have much of it. Where
    no line is known to have much, that of the event to blame."""
    blamed = where_of_event(profile, row, name) if row >= 0 else Where()
    lines = [(line, share) for line, share in shares_of_buckets(profile, "dataload") if share >= _OF_A_LINE]
    if not lines:
        return blamed, blamed.at
    first = lines[0][0]
    if len(lines) == 1:
        lines_clause = first.at
    else:
        *leading, last = [f"{line.at} ({percent(share)})" for line, share in lines]
        lines_clause = f"{','.join(leading)} and{last}"
    return replace(blamed, file=first.file, line=first.line, function=first.function), lines_clause


def _in_process(waits: "_Waits") -> tuple[str, str]:
    collating = waits.collating
    parts = [f"{duration(culprit.step_ns)} in {plain(culprit.name)}" for culprit in waits.culprits]
    if collating >= _MIN_SHARE_TO_NAME:
        parts.append(f"collating is {percent(collating)} of the wait")
    reason = f". The batch is made in the training process itself{': ' if parts else ''}{', '.join(parts)}"
    if waits.of_batch_ns <= waits.sending_ns:
        return reason, _NO_WORKERS.format(sending=duration(waits.sending_ns), making=duration(waits.of_batch_ns))
    alone = waits.whole_ns - waits.step_ns
    needed = math.ceil(waits.step_ns / alone) if alone > 0 else math.inf
    workers = f" {_ENOUGH_WORKERS.format(workers=many(needed, 'worker'))}" if needed <= _AS_MANY_AS_CORES else ""
    return reason, f"{_OTHER_PROCESSES}{workers} {_COLLATING if collating >= _MIN_SHARE_TO_NAME else _ONCE}"


def _of_workers(waits: "_Waits") -> tuple[str, str]:
    """Where they recorded nothing: the trace does not show what keeps other processes busy, only how long the loop
    waits for them."""
    if (late := waits.late_steps).sum() < _STEADY * len(late):
        if not late[len(late) // 2 :].any():
            return ", but only at its start, until its workers deliver", _START
        return f", in {count(late.sum())} of {many(len(late), 'step')}", _SOMETIMES
    if (receiving := waits.receiving) >= _RECEIVING:
        return f", {percent(receiving)} of it to receive batches that its workers have made", _RECEIVES
    alone = waits.whole_ns - waits.step_ns
    factor = waits.whole_ns / alone if alone > 0 else math.inf
    # How many workers more would keep up; how many there are is not recorded.
    is_worth_a_worker, needed = factor >= 1 + _WORTH_A_WORKER, ""
    if is_worth_a_worker and not math.isinf(factor):
        frequency = "each" if factor > 1.5 else f"every {count(math.floor(1 / (factor - 1)))}"
        workers = (
            f"{count(math.ceil(factor))} workers for each one" if factor > 2 else f"one worker more for {frequency}"
        )
        needed = f". To keep up, {workers} would be needed, and cores for them"
    batches = round(waits.batches, 1)
    reason = (
        f" for {count(batches)} batch{'' if batches == 1 else 'es'} of its workers. Without this wait a step would "
        f"take {duration(alone)} instead of {duration(waits.whole_ns)}"
    )
    receiving_is_seen = waits.profile.recording.trace.has_stacks  # only frames show it
    if is_worth_a_worker and not receiving_is_seen and waits.of_batch_ns <= waits.sending_ns:
        return reason, _MAY_RECEIVE.format(sending=duration(waits.sending_ns))
    return reason + needed, f"{_MORE_WORKERS if is_worth_a_worker else _FURTHER_AHEAD} {_ONCE}"


class _Waits(Struct, frozen=True, dict=True):
    """The times at which the loop waits for a batch."""

    profile: Profile
    step_ns: float  # of waiting in a step
    whole_ns: float  # of the whole step

    @cached_property
    def is_waiting(self) -> Bools:
        """The pieces of the steps in which the loop waits for a batch."""
        return self.profile.attribution.pieces.of("dataload")

    @cached_property
    def spans(self) -> Ints:
        """The annotations of the loop asking for a batch, in counted steps."""
        rows = self.profile.trace.where(_loading)
        return rows[self.profile.begins_in_counted(rows)]

    @cached_property
    def loader(self) -> str | None:
        """What the profiler calls the loader."""
        trace = self.profile.trace
        return trace.name(self.spans[0]) if len(self.spans) else None

    @property
    def in_process(self) -> bool:
        """Whether batches are made where they are used."""
        return "SingleProcess" in (self.loader or "")

    @property
    def batches(self) -> float:
        """How many batches a step asks for."""
        return len(self.spans) / self.profile.counted_steps

    @property
    def of_batch_ns(self) -> float:
        """How long the loop waits for one batch."""
        return self.step_ns / max(self.batches, 1.0)

    @cached_property
    def sending_ns(self) -> float:
        """What it may take to send a batch from a worker to the loop, by the number of tensors that are collated."""
        trace = self.profile.trace
        collated = outermost(trace, trace.where(lambda part: part.roles.named(_MAKES_A_TENSOR)))
        loading_around = enclosing(trace, collated, _loading)
        tensors = round(float(np.isin(loading_around, self.spans).sum()) / max(len(self.spans), 1))
        return float(max(tensors, _TENSORS) * _SENDING_NS)

    @cached_property
    def receiving(self) -> float:
        """The share of the wait in which the loop takes a batch from shared memory, by the recording with stacks."""
        trace = self.profile.recording.trace
        spans = trace.where(_loading)
        frames = trace.where(lambda part: part.roles.named(_RECEIVES_A_TENSOR))
        is_loading = enclosing(trace, frames, _loading) >= 0
        waited = int(trace.dur_ns[spans].sum())
        if not waited or not is_loading.any():
            return 0.0
        return float(trace.dur_ns[outermost(trace, frames[is_loading])].sum()) / waited

    @cached_property
    def culprits(self) -> list[Culprit]:
        """What the loading thread did meanwhile, the costliest first; only what takes a considerable part."""
        culprits = by_name(self.profile, self.is_waiting)
        return [culprit for culprit in culprits if culprit.step_ns >= _MIN_SHARE_TO_NAME * self.step_ns][:3]

    @property
    def late_steps(self) -> Bools:
        """Which counted steps wait noticeably."""
        pieces = self.profile.attribution.pieces
        waited = np.bincount(pieces.step[self.is_waiting], pieces.dur[self.is_waiting], len(self.profile.counted))
        late: Bools = waited[self.profile.counted] >= _NOTICED * self.step_ns
        return late

    @cached_property
    def collating(self) -> float:
        """The share of the wait in which the loader collates a batch."""
        trace, pieces = self.profile.trace, self.profile.attribution.pieces
        collates = trace.labels.fits(_COLLATES)
        is_waiting = self.is_waiting & (pieces.event >= 0) & self.profile.counted[pieces.step]
        events, dur = pieces.event[is_waiting].astype(np.int64), pieces.dur[is_waiting]
        if not collates.any() or not len(events):
            return 0.0
        collate_calls = enclosing(
            trace, events, lambda part: collates[part.name_codes] & np.isin(part.roles.kind, (OPERATOR, PYTHON))
        )
        in_collate = collates[trace.name_codes[events]] | (collate_calls >= 0)
        return float(dur[in_collate].sum()) / (self.step_ns * self.profile.counted_steps)


def _loading(part: Events) -> Bools:
    """The annotations of a loop asking for a batch."""
    annotations: Bools = part.roles.annotation & part.roles.named(DATALOAD)
    return annotations
