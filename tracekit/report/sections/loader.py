"""What do the workers of the data loader do with their time, and whose batches does the loop wait for?"""

import statistics
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from tracekit.base.units import duration, many, percent
from tracekit.findings.finding import Where
from tracekit.findings.late_batches import explained, judged
from tracekit.loading.causes import Explanation
from tracekit.loading.stalls import Loading, Part, Worker
from tracekit.profile import Profile
from tracekit.report.blocks import Sentences, Table
from tracekit.report.model import Report
from tracekit.report.section import Contents, of_variant
from tracekit.trace.schema import column

_INTEGER, _REAL, _TEXT = pa.int64(), pa.float64(), pa.string()
WORKERS = pa.schema(
    [
        column("rank", _INTEGER, "rank whose loader it belongs to", role="identity"),
        column("worker", _INTEGER, "its number, from 0", role="identity"),
        column("batches", _INTEGER, "that it made between the first counted step and the last"),
        column("busy", _REAL, "share of that time in which it made batches", "share"),
        column("making_ns", _REAL, "how long it makes a batch, from its indices to the call that sends it; mean", "ns"),
        column("fetching_ns", _REAL, "of that, in the dataset: __getitem__, __getitems__ or its iterator", "ns"),
        column("collating_ns", _REAL, "of that, in collate_fn", "ns"),
        column("pickling_ns", _REAL, "then, until it is pickled and tensors are in shared memory; mean", "ns"),
        column("sending_ns", _REAL, "then, until it is written to the pipe, which may be full; mean", "ns"),
        column("batch_bytes", _REAL, "of the tensors and arrays of a batch; mean", "B"),
        column("waited_ns", _INTEGER, "how long the loop waited for its batches", "ns"),
        column("where", _TEXT, "the line at which it was most of the time of its batches", role="place"),
        column("at_line", _REAL, "share of that time at this line", "share"),
        column("file", _TEXT, "file of the line", role="source"),
        column("line", _INTEGER, "line number in the file", role="source"),
        column("function", _TEXT, "function that the line is in", role="source"),
    ]
)
_WORDS: dict[Part, str] = {
    "earlier": "its worker was making an earlier batch",
    "idle": "its worker had no indices yet",
    "fetching": "fetching its samples",
    "collating": "collating them",
    "pickling": "pickling it",
    "sending": "writing it to a pipe",
    "receiving": "receiving it",
    "delayed": "sent, but not received yet",
    "drawing": "drawing later indices in the loop",
    "unknown": "unknown",
}


@of_variant("loader_workers", "Workers of the data loader", rank=17)
def loader_workers(_: Report, profile: Profile) -> Contents | None:
    """A sentence for each rank, and a row for each worker; nothing where no worker recorded itself."""
    ranks = profile.per_rank or {0: profile}
    loadings = {rank: (of_rank, of_rank.loading) for rank, of_rank in ranks.items() if of_rank.counted_steps}
    known = {rank: (of_rank, loading) for rank, (of_rank, loading) in loadings.items() if loading is not None}
    rows = [row for rank, (of_rank, loading) in known.items() for row in _rows(rank, of_rank, loading)]
    if not rows:
        return None
    sentences = [
        f"{f'Rank {rank}: ' if len(ranks) > 1 else ''}{_sentence(explanation)}"
        for rank, (of_rank, _) in known.items()
        if (explanation := explained(of_rank)) is not None
    ]
    mean = profile.mean
    worth = mean.parts.get("dataload", 0.0) / mean.step_ns if mean is not None and mean.step_ns else 0.0
    blocks = (Table.of("loader_workers", rows, WORKERS),)
    return Contents((Sentences(tuple(sentences)), *blocks) if sentences else blocks, worth=worth)


def _sentence(explanation: Explanation) -> str:
    parts = sorted(explanation.parts.items(), key=lambda part: -part[1])
    listed = ", ".join(f"{percent(ns / explanation.waited_ns)} {_WORDS[part]}" for part, ns in parts)
    return (
        f"The loop waited {duration(explanation.waited_ns)} for {many(explanation.stalls, 'batch', 'batches')}. "
        f"What happened to the batch that it waited for: {listed}."
    )


def _rows(rank: int, profile: Profile, loading: Loading) -> Iterator[dict[str, Any]]:
    within = judged(profile)
    waited: Counter[int] = Counter()
    for request in loading.requests:
        if within[0] <= request.asked_ns < within[1]:
            waited[request.process] += request.returned_ns - request.asked_ns
    workers = sorted(loading.workers.items(), key=lambda entry: (entry[1].facts.worker, entry[0]))
    for process, worker in workers:
        if row := _row(worker, within):
            yield {"rank": rank, "waited_ns": waited[process], **row}


def _row(worker: Worker, within: tuple[int, int]) -> dict[str, Any]:
    """What it did in that time; empty if it made no batch."""
    batches = worker.made_within(*within)
    if not batches:
        return {}
    lines = worker.lines(batches)
    ((place, spent_ns),) = lines.most_common(1) or ((None, 0),)
    at_place = (
        {
            "where": Where(place.file, place.line).at.removeprefix(" at "),
            "at_line": spent_ns / lines.total(),
            "file": place.file,
            "line": place.line,
            "function": place.function,
        }
        if place is not None
        else {}
    )
    return {
        "worker": worker.facts.worker,
        "batches": len(batches),
        "busy": worker.making_ns(*within) / max(within[1] - within[0], 1),
        "making_ns": statistics.fmean(batch.made_ns - batch.began_ns for batch in batches),
        "fetching_ns": statistics.fmean(batch.collating_ns - batch.began_ns for batch in batches),
        "collating_ns": statistics.fmean(batch.made_ns - batch.collating_ns for batch in batches),
        "pickling_ns": statistics.fmean(batch.sending_ns - batch.made_ns for batch in batches),
        "sending_ns": statistics.fmean(batch.sent_ns - batch.sending_ns for batch in batches),
        "batch_bytes": statistics.fmean(batch.size for batch in batches),
        **at_place,
    }
