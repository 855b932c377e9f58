"""Converts a file to coded batches in the order of the file, in this process and, for a long file, in others too.

Each process decompresses the whole file and converts every n-th chunk of it. This costs a seventh more than passing
chunks around would, but needs no communication. The others start only once this one has seen that the file is long.

    python -m tracekit.trace.reading.convert FILE OUT FIRST EVERY PARENT

is such a process: it writes its batches to OUT.arrow and, last of all, the meaning of their codes to OUT.json.
"""

import gc
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
from msgspec import Struct, field
from msgspec.structs import asdict

from tracekit.installed import python_path
from tracekit.trace.reading import native
from tracekit.trace.reading.chunks import Chunks, NoEventsError
from tracekit.trace.reading.decode import CODED, Decoder, ReadRows
from tracekit.trace.reading.event_details import Event
from tracekit.trace.reading.source import Source

# Bytes of JSON still to come that make it worth starting another process: at 0.2 GB, two take 1.5 times the processor
# time of one, and are no faster.
WORTH_BYTES = 512 << 20
_BYTES_KEPT_AFTER_EVENTS = 16 << 20  # bytes after the events that are stored
Translate = Callable[[Sequence[Event]], None]
FEW = 6  # batches that stay in memory: 12 MiB of trace


class Seen(Struct, frozen=True):
    """How far reading has come: bytes read, size of the file, and events."""

    bytes_read: int
    size: int
    events: int
    packed: bool


ReadWatch = Callable[[Seen], None]


class BatchStore:
    """Takes batches and gives them back by number: in memory while there are few, then in an Arrow file. Raises OSError
    if that cannot be written."""

    def __init__(self, path: Path | None, in_memory: int = FEW) -> None:
        self._path = path
        self._in_memory = in_memory if path is not None else None
        self._near: list[pa.RecordBatch] = []
        self._writer: Any = pa.ipc.new_file(str(path), CODED) if path is not None and not in_memory else None
        self._far: Any = None

    @staticmethod
    def of_another_process(path: Path) -> "BatchStore":
        """The batches that another process wrote to its file."""
        store = BatchStore(None)
        store._far = pa.ipc.open_file(pa.memory_map(str(path)))
        return store

    def add(self, batch: pa.RecordBatch) -> None:
        """Add the next batch."""
        if self._in_memory is None or len(self._near) < self._in_memory:
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


class Part(Struct):
    """What one process read from its chunks: batches, and the meaning of their codes."""

    store: BatchStore
    categories: list[Any] = field(default_factory=list)
    names: list[Any] = field(default_factory=list)
    tracks: list[Any] = field(default_factory=list)  # [pid, tid, context, whether there is no category]
    labels: list[Any] = field(default_factory=list)  # [what, pid, tid, label]
    spans: list[Any] = field(default_factory=list)  # for each batch that holds an event: first, last, ascending
    communications: list[Any] = field(default_factory=list)  # rows of event_details.COMMUNICATIONS
    notes: list[Any] = field(default_factory=list)  # rows of event_details.NOTES
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
            [list(row) for row in decoder.tracks],
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
        fields = {name: value for name, value in asdict(self).items() if name != "store"}
        path.write_text(json.dumps(fields))

    @staticmethod
    def read(path: Path, batches: Path) -> "Part":
        """The part that another process read. Raises OSError or ValueError if there is none."""
        return Part(BatchStore.of_another_process(batches), **json.loads(path.read_text()))


class Converted(Struct):
    """All that a file holds, in codes."""

    parts: list[Part]
    order: list[tuple[int, int]]  # for each batch: its process, and its number there
    header: bytes = b""
    rest: bytes | None = None  # what follows the list of events; None if nothing closes it
    header_lost: bool = False
    no_list: bool = False
    damage: str | None = None
    bytes_read: int = 0
    lost: int = 0

    def batch(self, index: int) -> pa.RecordBatch:
        """The batch at that position in the file."""
        owner, number = self.order[index]
        return self.parts[owner].store[number]


class _AloneError(Exception):
    """Other processes cannot help with this file: read it again without them."""


def convert(
    path: Path, folder: Path | None, workers: int, watch: ReadWatch | None, translate: Translate | None = None
) -> Converted:
    """Read a file. Once there are many batches, they are stored in `folder`, or in memory if there is none.

    Only this process can `translate` its events.
    """
    if folder is not None:
        try:
            return _convert(path, folder, workers if translate is None else 1, watch, translate)
        except _AloneError:
            return convert(path, folder, 1, watch, translate)
        except OSError:  # the disk is full or not writable: read without it
            pass
    return _convert(path, None, 1, watch, translate)


def _convert(
    path: Path, folder: Path | None, workers: int, watch: ReadWatch | None, translate: Translate | None
) -> Converted:
    store = BatchStore(folder / "own.arrow" if folder is not None else None)
    decoder = Decoder(translate=translate)
    other_workers = _Workers(path, folder, workers)
    rest: bytes | None = None
    finished: Future[None] | None = None

    def finish(rows: ReadRows) -> None:
        store.add(decoder.columns(rows))

    with Source(path) as source, other_workers, ThreadPoolExecutor(1) as beside:
        chunks = Chunks(source)
        try:
            for number, chunk in enumerate(chunks):
                if rest is not None:
                    rest += b"," + bytes(chunk[1:]) if len(rest) < _BYTES_KEPT_AFTER_EVENTS else b""
                elif other_workers.leave_to_me(number, chunks.bytes_read, source):
                    rows = decoder.read(chunk)  # while a thread finishes the chunk before it
                    if finished is not None:
                        finished.result()
                    finished = beside.submit(finish, rows)
                    if decoder.closing is not None:
                        other_workers.must_be_idle()
                        rest = bytes(chunk[decoder.closing : -1])
                if watch is not None:
                    watch(Seen(source.position, source.size, other_workers.with_theirs(decoder.events), source.packed))
        except NoEventsError:
            return Converted([], [], chunks.header, no_list=True, damage=source.damage, bytes_read=chunks.bytes_read)
        if finished is not None:
            finished.result()
        if rest is None:
            batch, rest = decoder.last(chunks.tail)
            store.add(batch)
        store.close()
        parts = [Part.of(store, decoder), *other_workers.parts()]
        return Converted(
            parts,
            other_workers.order(parts),
            chunks.header,
            rest,
            chunks.header_lost,
            damage=source.damage,
            bytes_read=chunks.bytes_read,
            lost=sum(part.lost for part in parts) + chunks.lost,
        )


class _Workers:
    """Other processes that convert their share of the chunks, once enough are read to show that the file is long."""

    def __init__(self, path: Path, folder: Path | None, workers: int) -> None:
        self._path = path
        self._folder = folder
        # The scanner and the thread that unpacks ahead of it take two cores as well, and no files between them.
        self._stride = workers if folder is not None and not native.BUILT else 1
        self._first: int | None = None
        self._running: list[subprocess.Popen[bytes]] = []
        self._seen = 0
        self._alone = 0  # events read before the other processes started

    def with_theirs(self, events: int) -> int:
        """The approximate number of events that all processes have read, given how many this one has read."""
        if not self._running:
            self._alone = events
        return events + (events - self._alone) * len(self._running)

    def leave_to_me(self, number: int, bytes_read: int, source: Source) -> bool:
        """Whether this process is to convert the chunk of that number, at that offset in bytes of JSON."""
        self._seen = number + 1
        if number == FEW and self._stride > 1 and bytes_read * (source.size / source.position - 1) > WORTH_BYTES:
            self._first = number
            program = sys.executable, "-m", __name__, str(self._path.absolute())
            self._running += [
                subprocess.Popen(
                    [*program, f"{self._folder}/{worker}", str(number + worker), str(self._stride), str(os.getpid())],
                    env={**os.environ, "PYTHONPATH": python_path()},
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
                for worker in range(1, self._stride)
            ]
        return self._first is None or (number - self._first) % self._stride == 0

    def must_be_idle(self) -> None:
        """Raise _AloneError if other processes are running, because this one has to handle the file alone."""
        if self._running:
            raise _AloneError

    def parts(self) -> list[Part]:
        """The parts that the worker processes have read, once all are done."""
        try:
            codes = [worker.wait() for worker in self._running]
            if any(codes):
                raise _AloneError
            outputs = [f"{self._folder}/{worker}" for worker in range(1, self._stride)] if self._running else []
            return [Part.read(Path(f"{output}.json"), Path(f"{output}.arrow")) for output in outputs]
        except (OSError, ValueError, TypeError, pa.ArrowInvalid):
            raise _AloneError from None

    def order(self, parts: list[Part]) -> list[tuple[int, int]]:
        """Which process has each batch. Raises _AloneError if the batches do not match the chunks that were seen."""
        owners = [0] * self._seen
        if self._first is not None:
            owners[self._first :] = [(n - self._first) % self._stride for n in range(self._first, self._seen)]
        owners += [0] * (len(parts[0].store) - owners.count(0))
        counts = [0] * len(parts)
        order = []
        for owner in owners:
            order.append((owner, counts[owner]))
            counts[owner] += 1
        if counts != [len(part.store) for part in parts]:
            if not self._running:
                return [(0, number) for number in range(len(parts[0].store))]
            raise _AloneError
        return order

    def __enter__(self) -> "_Workers":
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._running:
            worker.kill()
            worker.wait()


def main(file: str, output: str, first: str, stride: str, parent: str) -> int:
    """Convert chunks FIRST, FIRST + EVERY, …; end if the parent process is gone."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.disable()
    store, decoder = BatchStore(Path(f"{output}.arrow"), in_memory=0), Decoder()
    with Source(Path(file)) as source:
        for number, chunk in enumerate(Chunks(source)):
            if number >= int(first) and (number - int(first)) % int(stride) == 0:
                store.add(decoder.batch(chunk))
                if decoder.closing is not None or os.getppid() != int(parent):
                    return 1
    store.close()
    Part.of(store, decoder).write(Path(f"{output}.json"))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
