"""What made the loop wait for a batch: each wait is divided, exactly, into what happened meanwhile to the batch that
ended it.

The loop's request names the worker and the number of its batch. The moments of that batch cut the wait into parts; what
lies before the worker began it is the worker's earlier work, or idleness. At which lines a worker made its batches, its
samples say.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from tracekit.loading.record import LOOP, Batch, Place, Recorded, Request, read_all

Part = Literal[
    "earlier",  # its worker was making an earlier batch
    "idle",  # its worker had nothing to do: the loop had not given it the indices yet
    "fetching",  # `__getitem__`, `__getitems__`, or the dataset's iterator
    "collating",
    "pickling",  # which includes copying tensors to shared memory
    "sending",  # writing to a pipe, which lasts while it is full
    "receiving",  # in the loop
    "delayed",  # it was sent, and the loop waits for a core, for the worker to share its memory, or until it is pinned
    "drawing",  # the indices of a later batch, in the loop
    "unknown",  # the worker, or its batch, was not recorded
]
PARTS: tuple[Part, ...] = get_args(Part)
MAKING: tuple[Part, ...] = ("earlier", "fetching", "collating")
HANDING_OVER: tuple[Part, ...] = ("pickling", "sending", "receiving", "delayed")

Interval = tuple[int, int]  # from and to, unix ns
Loader = tuple[int, int]  # its rank and number


class Stall(NamedTuple):
    """The loop waited for one batch."""

    request: Request
    worker: int  # its number; LOOP if it was not recorded
    batch: Batch | None
    parts: dict[Part, int]  # ns; they add up to the wait

    @property
    def waited_ns(self) -> int:
        """How long."""
        return sum(self.parts.values())


class Worker:
    """What one worker recorded."""

    def __init__(self, recorded: Recorded) -> None:
        self.facts = recorded.facts
        self.batches = recorded.batches
        self._recorded = recorded
        self._began = [batch.began_ns for batch in self.batches]
        self._by_number: dict[int, list[Batch]] = {}
        for batch in self.batches:
            self._by_number.setdefault(batch.number, []).append(batch)

    @property
    def loader(self) -> Loader:
        """Whose worker it is."""
        return self.facts.rank, self.facts.loader

    def batch(self, request: Request) -> Batch | None:
        """The batch that ended the request; the same number occurs in every epoch."""
        made = [one for one in self._by_number.get(request.number, ()) if one.made_ns <= request.returned_ns]
        return made[-1] if made else None

    def made_within(self, start_ns: int, end_ns: int) -> list[Batch]:
        """The batches that were being made in that time."""
        first = max(bisect_left(self._began, start_ns) - 1, 0)
        return [one for one in self.batches[first : bisect_left(self._began, end_ns)] if one.made_ns > start_ns]

    def making_ns(self, start_ns: int, end_ns: int) -> int:
        """For how much of that time it was making a batch."""
        made = self.made_within(start_ns, end_ns)
        return sum(min(one.made_ns, end_ns) - max(one.began_ns, start_ns) for one in made)

    @property
    def persists(self) -> bool:
        """Whether it has been there in more than one epoch."""
        return len(self._epochs) > 1

    def epochs_ns(self, start_ns: int, end_ns: int) -> int:
        """How much of that time lies in an epoch: between its first batch of one, and its last."""
        epochs = self._epochs
        first = max(bisect_left(epochs, (start_ns, 0)) - 1, 0)
        meanwhile = epochs[first : bisect_left(epochs, (end_ns, 0))]
        return sum(max(min(end, end_ns) - max(start, start_ns), 0) for start, end in meanwhile)

    @cached_property
    def _epochs(self) -> list[Interval]:
        firsts = [n for n, one in enumerate(self.batches) if not n or one.number <= self.batches[n - 1].number]
        bounds = pairwise([*firsts, len(self.batches)])
        return [(self.batches[first].began_ns, self.batches[end - 1].made_ns) for first, end in bounds]

    @cached_property
    def _moments(self) -> list[int]:
        return [sample.at_ns for sample in self._recorded.samples]

    def lines(self, batches: Iterable[Batch]) -> Counter[Place]:
        """How long the worker was at which line while it made these batches, ns, as far as they were sampled: a sample
        stands for the time around it, up to halfway to the next one, or to where the batch begins or is made."""
        spent: Counter[Place] = Counter()
        for batch in batches:
            first, last = bisect_right(self._moments, batch.began_ns), bisect_right(self._moments, batch.made_ns)
            samples = self._recorded.samples[first:last]
            halfway = [(one.at_ns + other.at_ns) // 2 for one, other in pairwise(samples)]
            bounds = [batch.began_ns, *halfway, batch.made_ns]
            for (began_ns, ended_ns), sample in zip(pairwise(bounds), samples, strict=False):
                if (place := self._recorded.places.get(sample.place)) is not None:
                    spent[place] += ended_ns - began_ns
        return spent


class Loading:
    """What the processes of a loop and of its loaders' workers recorded."""

    def __init__(self, records: Iterable[Recorded]) -> None:
        records = [*records]
        self.requests = sorted((one for recorded in records for one in recorded.requests), key=_asked)
        self.workers = {
            recorded.facts.process: Worker(recorded) for recorded in records if recorded.facts.worker != LOOP
        }
        self._asked = [request.asked_ns for request in self.requests]

    def stalls(self, intervals: Sequence[Interval]) -> list[Stall]:
        """A stall for each request of the loop's that these waits belong to, in order of time."""
        waits: dict[int, list[Interval]] = {}
        for start_ns, end_ns in intervals:
            index = max(bisect_right(self._asked, start_ns) - 1, 0)
            while index < len(self.requests) and self.requests[index].asked_ns < end_ns:
                request = self.requests[index]
                clipped = max(start_ns, request.asked_ns), min(end_ns, request.returned_ns)
                if clipped[0] < clipped[1]:
                    waits.setdefault(index, []).append(clipped)
                index += 1
        return [self._stall(self.requests[index], parts) for index, parts in sorted(waits.items())]

    def stall(self, request: Request) -> Stall:
        """The whole of a request."""
        return self._stall(request, [(request.asked_ns, request.returned_ns)])

    def _stall(self, request: Request, waits: Iterable[Interval]) -> Stall:
        worker = self.workers.get(request.process)
        batch = worker.batch(request) if worker is not None else None
        parts: Counter[Part] = Counter()
        for start_ns, end_ns in waits:
            if worker is None or batch is None:
                parts["unknown"] += end_ns - start_ns
                continue
            parts.update(_divided(start_ns, end_ns, batch, request))
            before = parts.pop("idle", 0) if batch.began_ns > start_ns else 0
            if before:
                earlier = worker.making_ns(start_ns, min(batch.began_ns, end_ns))
                parts.update({"earlier": earlier, "idle": before - earlier})
        # What the loop's thread computed until it had the batch, it did to receive it.
        delayed_ns = max(parts["receiving"] - max(request.processor_ns, 0), 0)
        parts.update({"receiving": -delayed_ns, "delayed": delayed_ns})
        number = worker.facts.worker if worker is not None else LOOP
        return Stall(request, number, batch, {part: ns for part in PARTS if (ns := parts[part])})


def _asked(request: Request) -> int:
    return request.asked_ns


def _divided(start_ns: int, end_ns: int, batch: Batch, request: Request) -> Mapping[Part, int]:
    """The parts of a wait, with all that lies before the batch was begun as `idle`."""
    bounds = (
        (start_ns, "idle"),
        (batch.began_ns, "fetching"),
        (batch.collating_ns, "collating"),
        (batch.made_ns, "pickling"),
        (batch.sending_ns, "sending"),
        (min(batch.sent_ns, request.got_ns), "receiving"),  # the loop may have it before the worker knows that it sent
        (request.got_ns, "drawing"),
    )
    ends = [*(moment for moment, _ in bounds[1:]), end_ns]
    parts: dict[Part, int] = {}
    until = start_ns
    for (_, part), ends_ns in zip(bounds, ends, strict=True):
        ends_ns = min(max(ends_ns, until), end_ns)  # noqa: PLW2901
        parts[part] = ends_ns - until  # type: ignore[index]
        until = ends_ns
    return parts


def read_loading(folder: Path, rank: int | None = None) -> Loading | None:
    """What was recorded in a folder, of all ranks or of one; None if nothing was."""
    records = [recorded for recorded in read_all(folder) if rank is None or recorded.facts.rank == rank]
    return Loading(records) if records else None
