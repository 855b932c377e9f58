"""Coded batches of one process, chunk by chunk: in memory while there are few, then in an Arrow file."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from tracekit.trace.reading.decode import Decoder
from tracekit.trace.schema import CODED

FEW = 6  # batches that stay in memory: 12 MiB of trace


class BatchStore:
    """Takes batches and gives them back by number. Raises OSError if its file cannot be written."""

    def __init__(self, path: Path | None, few: int = FEW) -> None:
        self._path = path
        self._few = few if path is not None else None
        self._near: list[pa.RecordBatch] = []
        self._writer: Any = pa.ipc.new_file(str(path), CODED) if path is not None and not few else None
        self._far: Any = None

    @staticmethod
    def of_another_process(path: Path) -> "BatchStore":
        """The batches that another process wrote to its file."""
        store = BatchStore(None)
        store._far = pa.ipc.open_file(pa.memory_map(str(path)))
        return store

    def add(self, batch: pa.RecordBatch) -> None:
        """Add the next batch."""
        if self._few is None or len(self._near) < self._few:
            self._near.append(batch)
            return
        if self._writer is None:
            self._writer = pa.ipc.new_file(str(self._path), CODED)
        self._writer.write_batch(batch)

    def close(self) -> None:
        """Finish: no more batches will be added."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
            self._far = pa.ipc.open_file(pa.memory_map(str(self._path)))  # a batch may stay in use for long

    def __getitem__(self, number: int) -> pa.RecordBatch:
        if number < len(self._near):
            return self._near[number]
        return self._far.get_batch(number - len(self._near))

    def __len__(self) -> int:
        return len(self._near) + (self._far.num_record_batches if self._far is not None else 0)


@dataclass
class Part:
    """What one process read from its chunks: batches, and the meaning of their codes."""

    store: BatchStore
    categories: list[Any] = field(default_factory=list)
    names: list[Any] = field(default_factory=list)
    tracks: list[Any] = field(default_factory=list)  # [pid, tid]
    labels: list[Any] = field(default_factory=list)  # [what, pid, tid, label]
    spans: list[Any] = field(default_factory=list)  # for each batch that holds an event: first, last, ascending
    communications: list[Any] = field(default_factory=list)  # rows of communications.COMMUNICATIONS
    notes: list[Any] = field(default_factory=list)  # rows of gpu_notes.NOTES
    events: int = 0
    lost: int = 0
    mended: int = 0

    @staticmethod
    def of(store: BatchStore, decoder: Decoder) -> "Part":
        """The part that this process read."""
        return Part(
            store,
            list(decoder.categories),
            list(decoder.names),
            [list(pair) for pair in decoder.tracks],
            [[*key, label] for key, label in decoder.labels.items()],
            decoder.spans,
            decoder.communications,
            decoder.notes,
            decoder.events,
            decoder.lost,
            decoder.mended,
        )

    def write(self, path: Path) -> None:
        """Everything but the batches, as JSON."""
        fields = {name: value for name, value in vars(self).items() if name != "store"}
        path.write_text(json.dumps(fields))

    @staticmethod
    def read(path: Path, batches: Path) -> "Part":
        """The part that another process read. Raises OSError or ValueError if there is none."""
        return Part(BatchStore.of_another_process(batches), **json.loads(path.read_text()))
