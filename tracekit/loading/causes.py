"""Why the loop waited for its batches: one slow worker, too few of them, what it takes to hand a batch over, larger or
slow batches, a queue that was full, or the indices that the loop itself draws.

Each reason is judged by the waits alone, weighted by their length; what would help follows from what was measured: how
long a worker makes a batch, how long the loop works on one, and how long it takes to receive one.
"""

import math
import statistics
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, chain, pairwise
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from tracekit.loading.record import Batch, Place, Request
from tracekit.loading.stalls import HANDING_OVER, MAKING, PARTS, Interval, Loader, Loading, Part, Stall

Reason = Literal[
    "handing_over",  # pickling, sending and receiving batches
    "drawing",  # the loop draws the indices of later batches itself, in its sampler
    "delayed",  # batches that were sent reach the loop late, most of all where too many processes share the cores
    "starting",  # workers make their first batches of an epoch
    "larger_batches",
    "slow_worker",
    "slow_batches",  # some take far longer than most, whoever makes them and as large as others
    "few_workers",  # all of them are busy all the time
    "full_queue",  # they are idle at times, having made as many batches as they may, and yet late at others
]
_MOST = 0.5  # of the wait
_LEAST_KNOWN = 0.5  # of the wait: with less of it recorded, nothing is said
_OF_ONE = 0.6  # of the wait: then it is one worker's
_SLOWER = 1.3  # times as long as the others take for a batch, or as most batches take
_FAR_SLOWER = 2.0
_LARGER = 1.3  # times as large as most batches
_BUSY = 0.85  # of the time: with less, workers had nothing to do


class Explanation(Struct, frozen=True, kw_only=True):
    """Why the loop waited, and what that was judged by. Times are in ns, those of a batch means."""

    reason: Reason
    stalls: int
    waited_ns: int  # in all of them
    parts: dict[Part, int]  # of which it consists
    workers: int
    cores: int  # that they may use; 0 if unknown
    persist: bool  # workers were seen to stay for another epoch
    worker: int  # whose batches ended most of the wait
    worker_share: float  # of the wait
    place: Place | None = None  # where workers spent most of the time of the batches to blame
    place_ns: float = 0.0  # of such a batch
    blamed_ns: float = 0.0  # how long such a batch takes to make
    making_ns: float  # how long a worker makes a batch
    slower: float  # the batches to blame take so many times as long as others
    larger: float  # the batches that were waited for are so many times as large as most
    handing_ns: float  # the loop receives a batch that is there
    working_ns: float  # the loop takes for a batch, without waiting
    busy: float  # the workers' share of the time, from their first batch of an epoch to their last
    others_idle: float  # during the wait, the share of the other workers' time in which they had nothing to do

    @property
    def stall_ns(self) -> float:
        """The mean wait for a batch that was late."""
        return self.waited_ns / self.stalls

    def share(self, *parts: Part) -> float:
        """The share of the wait that these parts take."""
        return sum(self.parts.get(part, 0) for part in parts) / max(self.waited_ns, 1)

    @property
    def needed(self) -> int | None:
        """How many workers keep up with the loop; None if its own time was not seen."""
        each_ns = self.working_ns + self.handing_ns
        return math.ceil(self.making_ns / each_ns) if each_ns > 0 else None

    @property
    def is_faster_without(self) -> bool:
        """Whether the loop makes a batch as fast as it receives one."""
        return self.making_ns <= self.handing_ns


def explain(loading: Loading, waits: Sequence[Interval], within: Interval) -> Explanation | None:
    """Why the loop waited in these intervals, which lie within the time that is judged; None if too little of them was
    recorded to say."""
    stalls = [stall for stall in loading.stalls(waits) if stall.batch is not None]
    waited_ns = sum(stall.waited_ns for stall in stalls)
    if not waited_ns or waited_ns < _LEAST_KNOWN * sum(end - start for start, end in waits):
        return None
    parts: Counter[Part] = Counter()
    waits_for: Counter[Loader] = Counter()
    for stall in stalls:
        parts.update(stall.parts)
        waits_for[loading.workers[stall.request.process].loader] += stall.waited_ns
    ((loader, _),) = waits_for.most_common(1)
    its_stalls = [stall for stall in stalls if loading.workers[stall.request.process].loader == loader]
    blamed: dict[int, list[Batch]] = {}  # by the process of their worker, those that were waited for
    waits_for_worker: Counter[int] = Counter()  # by its number: unless workers persist, each epoch has new processes
    for stall in its_stalls:
        waits_for_worker[stall.worker] += stall.waited_ns
        blamed.setdefault(stall.request.process, []).extend([stall.batch] if stall.batch is not None else [])
    ((number, longest_ns),) = waits_for_worker.most_common(1)
    # Of a loop's loaders, the one that it waits for most: all its workers that made batches meanwhile.
    made = {pid: worker.made_within(*within) for pid, worker in loading.workers.items() if worker.loader == loader}
    made = {process: batches or blamed[process] for process, batches in made.items() if batches or process in blamed}
    workers = [loading.workers[process] for process in made]
    batches = [*chain.from_iterable(made.values())]
    requests = [one for one in loading.requests if within[0] <= one.asked_ns < within[1]]
    facts = next(worker.facts for worker in workers if worker.facts.worker == number)
    first_ns = sum(stall.waited_ns for stall in stalls if _is_first(stall.request, loading))
    its_requests = [one for one in requests if (worker := loading.workers.get(one.process)) and worker.loader == loader]
    explanation = Explanation(
        reason="starting",  # of an epoch, the first batches are the first of each worker, which get them in turn
        stalls=len(stalls),
        waited_ns=waited_ns,
        parts={part: parts[part] for part in PARTS if parts[part]},
        workers=facts.workers,
        cores=facts.cores,
        persist=any(worker.persists for worker in workers),
        worker=facts.worker,
        worker_share=longest_ns / waited_ns,
        making_ns=statistics.fmean(map(_making, batches)),
        slower=_times(its_stalls, batches, _making),
        larger=_times(its_stalls, batches, _size),
        handing_ns=_handing_ns(loading, its_requests),
        working_ns=_working_ns(requests, its_requests),
        busy=sum(worker.making_ns(*within) for worker in workers)
        / max(sum(worker.epochs_ns(*within) for worker in workers), 1),
        others_idle=_others_idle(loading, [*made], its_stalls),
    )
    if first_ns >= _MOST * waited_ns:
        return explanation
    its_made = {
        process: batches for process, batches in made.items() if loading.workers[process].facts.worker == number
    }
    others = [batch for process, batches in made.items() if process not in its_made for batch in batches]
    if others and explanation.worker_share >= _OF_ONE and explanation.share(*MAKING) >= _MOST:
        its_batches = chain.from_iterable(its_made.values())
        slower = statistics.fmean(map(_making, its_batches)) / max(statistics.fmean(map(_making, others)), 1)
        if slower >= _SLOWER and explanation.slower < _FAR_SLOWER * slower:
            explanation = replace(explanation, reason="slow_worker", slower=slower)
            return _with_place(explanation, loading, its_made)
    explanation = replace(explanation, reason=_reason(explanation))
    return _with_place(
        explanation, loading, blamed if explanation.reason in ("larger_batches", "slow_batches") else made
    )


def _reason(explanation: Explanation) -> Reason:
    """The reason where it is no single worker."""
    if explanation.share(*HANDING_OVER) >= _MOST:
        return "delayed" if 2 * explanation.share("delayed") >= explanation.share(*HANDING_OVER) else "handing_over"
    if explanation.share("drawing") >= _MOST:
        return "drawing"
    if explanation.share("idle") >= _MOST:
        return "full_queue"
    if explanation.busy >= _BUSY:
        return "few_workers"
    if explanation.larger >= _LARGER and explanation.slower >= _SLOWER:
        return "larger_batches"
    return "slow_batches" if explanation.slower >= _FAR_SLOWER else "full_queue"


def _with_place(explanation: Explanation, loading: Loading, blamed: Mapping[int, Sequence[Batch]]) -> Explanation:
    """The explanation with the line at which most of the time of these batches went, by the process of their worker."""
    lines: Counter[Place] = Counter()
    for process, batches in blamed.items():
        lines.update(loading.workers[process].lines(batches))
    lasting = [*map(_making, chain.from_iterable(blamed.values()))]
    if not lines or not lasting:
        return explanation
    ((place, sampled_ns),) = lines.most_common(1)
    blamed_ns = statistics.fmean(lasting)
    # Of batches between two samples nothing is known: those that were sampled stand for them.
    return replace(explanation, place=place, place_ns=sampled_ns / lines.total() * blamed_ns, blamed_ns=blamed_ns)


def _making(batch: Batch) -> int:
    return batch.made_ns - batch.began_ns


def _size(batch: Batch) -> int:
    return batch.size


def _times(stalls: Sequence[Stall], batches: Sequence[Batch], of: Callable[[Batch], int]) -> float:
    """How many times as much as most batches those have that were waited for, each weighted by the wait."""
    usual = statistics.median(map(of, batches))
    waited_ns = sum(stall.waited_ns for stall in stalls)
    late = sum(stall.waited_ns * of(stall.batch) for stall in stalls if stall.batch is not None)
    return late / waited_ns / usual if waited_ns and usual else 1.0


def _handing_ns(loading: Loading, requests: Sequence[Request]) -> float:
    """How long the loop takes to receive a batch that was asked for and is pickled."""
    lasting = []
    for request in requests:
        worker = loading.workers.get(request.process)
        if worker is not None and (batch := worker.batch(request)) is not None:
            lasting.append(max(request.got_ns - max(request.asked_ns, batch.sending_ns), 0))
    return statistics.median(lasting) if lasting else 0.0


def _is_first(request: Request, loading: Loading) -> bool:
    """Whether it is for the first batch of a worker in an epoch."""
    return request.number < loading.workers[request.process].facts.workers


def _working_ns(requests: Sequence[Request], of_loader: Sequence[Request]) -> float:
    """How long the loop works on a batch of that loader. What lies before the first one of an epoch is no such work: an
    evaluation, and the start of new workers."""
    waits = [*accumulate((one.returned_ns - one.asked_ns for one in requests), initial=0)]
    asked = [one.asked_ns for one in requests]
    between_ns = []
    for before, after in pairwise(of_loader):
        if after.number:
            first, end = bisect_left(asked, before.returned_ns), bisect_left(asked, after.asked_ns)
            waited_ns = waits[end] - waits[first] if first < end else 0  # for batches of other loaders
            between_ns.append(max(after.asked_ns - before.returned_ns - waited_ns, 0))
    return statistics.fmean(between_ns) if between_ns else 0.0


def _others_idle(loading: Loading, processes: Sequence[int], stalls: Sequence[Stall]) -> float:
    """During the waits, the share of the other workers' time in which they made nothing."""
    idle_ns = whole_ns = 0
    for stall in stalls:
        start_ns, end_ns = stall.request.asked_ns, stall.request.returned_ns
        for process in processes:
            if process != stall.request.process:
                epochs_ns = loading.workers[process].epochs_ns(start_ns, end_ns)
                whole_ns += epochs_ns
                idle_ns += epochs_ns - loading.workers[process].making_ns(start_ns, end_ns)
    return idle_ns / whole_ns if whole_ns else 0.0
