"""Records of a loop and of its workers as they would be left, without any process; times in ms from BEGAN."""

import json
from itertools import pairwise

import small

from tracekit.loading.record import Batch, Facts, Place, Record, Recorded, Request, Sample
from tracekit.loading.stalls import Loading

WAITS = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
BEGAN = 1_780_000_000_000_000_000
LINE = Place("data.py", 88, "__getitem__", "radius_graph", "torch_geometric/nn/pool/__init__.py")
OTHER_LINE = Place("data.py", 91, "__getitem__")
LOOP_PROCESS, FIRST_WORKER = 10, 100


def at(ms: float) -> int:
    return BEGAN + round(ms * 1e6)


class MadeLoading:
    """Workers, whose batches are added one by one, and the loop that asks for them."""

    def __init__(self, workers: int, cores: int = 8) -> None:
        self.cores = cores
        self.batches: list[list[Batch]] = [[] for _ in range(workers)]
        self.samples: list[list[Sample]] = [[] for _ in range(workers)]
        self.requests: list[Request] = []

    def batch(self, worker, number, began, fetched, made, sent=None, size=1000, slow_share=0.9, sending=None):
        """A batch, sampled every ms: this share of it at LINE, the rest at OTHER_LINE."""
        sent = made + 0.5 if sent is None else sent
        sending = made if sending is None else sending
        moments = (at(began), at(fetched), at(made), at(made), at(sending), at(sent))
        self.batches[worker].append(Batch(number, 0, *moments, size, 1))
        for ms in range(round(made - began)):
            place = 0 if ms < slow_share * (made - began) else 1
            self.samples[worker].append(Sample(at(began + ms + 0.9), place))

    def asks(self, worker, number, asked, got, returned=None, processor=1.0):
        """The loop asks for a batch and gets it."""
        returned = got if returned is None else returned
        moments = (at(asked), at(got), at(returned))
        self.requests.append(Request(FIRST_WORKER + worker, number, round(processor * 1e6), *moments))

    def records(self) -> list[Recorded]:
        count = len(self.batches)
        loop = Facts(process=LOOP_PROCESS, began_ns=BEGAN, cores=self.cores)
        workers = [
            Recorded(
                Facts(process=FIRST_WORKER + n, began_ns=BEGAN, worker=n, workers=count, cores=self.cores),
                self.batches[n],
                [],
                self.samples[n],
                {0: LINE, 1: OTHER_LINE},
            )
            for n in range(count)
        ]
        return [Recorded(loop, [], self.requests, [], {}), *workers]

    def write(self, folder) -> None:
        """The files that the processes would leave."""
        for recorded in self.records():
            record = Record.create(folder, recorded.facts)
            for place in recorded.places.values():
                record.number_of(place)
            for ring, entries in (
                (record.batches, recorded.batches),
                (record.requests, recorded.requests),
                (record.samples, recorded.samples),
            ):
                for entry in entries:
                    ring.append(entry)
            record.close()

    def trace(self, folder, skipped: int = 9):
        """The path of a trace of the loop, with the records beside it; the first batches are late in any case."""
        self.write(folder / "loader")
        events = []
        for number, (request, after) in enumerate(pairwise(self.requests[skipped:])):
            moments = request.asked_ns, request.returned_ns, after.asked_ns
            start, got, end = ((ns - BEGAN) / 1000 for ns in moments)
            events += [
                small.step(number, start, end),
                small.event("user_annotation", WAITS, start, got),
                small.op("aten::mm", got, end),
            ]
        path = folder / "trace.json"
        path.write_text(json.dumps({"traceEvents": events, "baseTimeNanoseconds": BEGAN}))
        return path

    @property
    def loading(self) -> Loading:
        return Loading(self.records())

    def waits(self, least_ms: float = 1.0) -> list[tuple[int, int]]:
        """The times for which the loop waits for its batches."""
        spans = [(request.asked_ns, request.returned_ns) for request in self.requests]
        return [(start, end) for start, end in spans if end - start > least_ms * 1e6]

    def within(self) -> tuple[int, int]:
        return self.requests[0].asked_ns, self.requests[-1].returned_ns


def taking_turns(making_ms, working_ms: float, batches: int, workers: int = 3, prefetch: int = 2, cores: int = 8):
    """What a loader and a loop do that give and take batches in turn, as DataLoader does: `making_ms` tells what a
    batch takes by worker and number, and the loop works so long on each."""
    made = MadeLoading(workers, cores)
    free, given, sent = [0.0] * workers, dict.fromkeys(range(workers * prefetch), 0.0), {}
    now = 0.0
    for number in range(batches):
        for upcoming in [n for n in given if n not in sent and n < batches]:
            worker = upcoming % workers
            began = max(free[worker], given[upcoming])
            lasting, size = making_ms(worker, upcoming)
            free[worker] = began + lasting
            sent[upcoming] = free[worker] + 0.5
            made.batch(worker, upcoming, began, began + lasting * 0.9, began + lasting, sent[upcoming], size)
        got = max(now, sent[number]) + 0.2
        made.asks(number % workers, number, now, got)
        given[number + workers * prefetch] = got
        now = got + working_ms
    return made
