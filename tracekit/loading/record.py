"""The record of a process that takes part in loading: a worker's batches and the lines that it was seen at, or the
loop's requests for batches. All moments are unix ns.

Each process has a file of its own in one folder: rings of the last entries (`tracekit.base.rings`) that stay readable
when the process is killed. A place in the code is written once, as a line of JSON, and samples refer to it by number.
"""

import mmap
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec

from tracekit.base import disclosure
from tracekit.base.names import sanitize
from tracekit.base.rings import Layout, Ring

FOLDER = "loader"  # beside the traces of a pass
SCHEMA = "tracekit.loading/1"
LOOP = -1  # in the place of a worker's number
ELSEWHERE = -1  # in the place of a place's number: outside all code that could be named
BATCHES, REQUESTS, SAMPLES = 2048, 4096, 16_384  # entries of each ring; the samples of 80 s
_PLACES, _PLACE_BYTES = 256, 512
_FACTS_BYTES = 1024
_MOST_FILES = 64  # in a folder: workers that do not persist are new in each epoch
_MOST_READ = 4 * _MOST_FILES  # files, of a folder that others may have filled
_LATEST_NS = 1 << 62
_NAME = re.compile(r"(\d{1,20})-(\d{1,10})\.loading")
_Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 31)]
_Text = Annotated[str, msgspec.Meta(max_length=_PLACE_BYTES)]


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """Who recorded."""

    schema: str = SCHEMA
    process: _Count
    began_ns: Annotated[int, msgspec.Meta(ge=0, le=_LATEST_NS)]
    worker: Annotated[int, msgspec.Meta(ge=LOOP, le=1 << 16)] = LOOP
    workers: Annotated[int, msgspec.Meta(ge=0, le=1 << 16)] = 0  # of its loader
    loader: Annotated[int, msgspec.Meta(ge=0, le=_LATEST_NS)] = 0  # a number that no other one has at the time
    rank: _Count = 0
    cores: _Count = 0  # that the process may use; 0 if unknown


class Batch(NamedTuple):
    """A batch that a worker made; the moments are in this order. It is written when the batch was sent."""

    number: int  # in its epoch, as the loader counts
    idle_ns: int  # a duration: how long the worker had waited for something to do
    began_ns: int  # it got the indices: `__getitem__`, `__getitems__` or the dataset's iterator begins
    collating_ns: int  # `collate_fn` begins
    made_ns: int
    pickling_ns: int  # its sending thread begins, which copies tensors to shared memory where they are not there yet
    sending_ns: int  # it begins to write, which lasts while the pipe is full
    sent_ns: int
    size: int  # bytes of its tensors and arrays
    tensors: int  # and arrays


class Request(NamedTuple):
    """The loop asked for a batch, and got it."""

    process: int  # of the worker that made it
    number: int
    processor_ns: int  # a duration: how long the loop's thread computed until it got it
    asked_ns: int
    got_ns: int  # it was received; then, the loop draws the indices of a later batch
    returned_ns: int


class Sample(NamedTuple):
    """Where a worker's main thread was, at a moment at which it was making a batch."""

    at_ns: int
    place: int  # number of a place, or ELSEWHERE


class Place(NamedTuple):
    """A line at which a worker was seen: the innermost one of the user's or, without any, of a library."""

    file: _Text
    line: _Count
    function: _Text  # that the line is in
    callee: _Text = ""  # the Python function that it was calling; empty if none
    callee_file: _Text = ""


_LAYOUT = Layout(
    SCHEMA, _FACTS_BYTES, ((Batch, BATCHES), (Request, REQUESTS), (Sample, SAMPLES)), _PLACES * _PLACE_BYTES
)


class Record:
    """An open record. `create` makes one to write to, `read` and `read_all` take what is in one."""

    def __init__(self, memory: mmap.mmap, facts: Facts) -> None:
        self.facts, self._memory = facts, memory
        self.batches: Ring[Batch] = _LAYOUT.ring(memory, 0)
        self.requests: Ring[Request] = _LAYOUT.ring(memory, 1)
        self.samples: Ring[Sample] = _LAYOUT.ring(memory, 2)
        self._places: dict[Place, int] = {}

    @staticmethod
    def create(folder: Path, facts: Facts) -> "Record":
        """Make a file in that folder, which is made if need be, and remove the oldest ones of processes that have
        ended, if there are too many. Raises OSError."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{facts.began_ns}-{facts.process}.loading"
        record = Record(_LAYOUT.create(path, msgspec.json.encode(facts)), facts)
        files = _files(folder)
        for process, old in files[: max(len(files) - _MOST_FILES, 0)]:
            if not _is_running(process):
                old.unlink(missing_ok=True)
        return record

    def number_of(self, place: Place) -> int:
        """The number of a place, which is written if it is new; ELSEWHERE where there is no more room."""
        number = self._places.get(place)
        if number is None:
            number = len(self._places)
            try:
                encoded = msgspec.json.encode(place)
            except UnicodeEncodeError:  # a path that is no text
                encoded = b""
            if not 0 < len(encoded) <= _PLACE_BYTES or number >= _PLACES:
                return ELSEWHERE
            at = _LAYOUT.rest_at + number * _PLACE_BYTES
            self._memory[at : at + _PLACE_BYTES] = encoded.ljust(_PLACE_BYTES)
            self._places[place] = number
        return number

    def place(self, number: int) -> Place | None:
        """The place of that number; None if there is none."""
        if not 0 <= number < _PLACES:
            return None
        at = _LAYOUT.rest_at + number * _PLACE_BYTES
        try:
            return msgspec.json.decode(self._memory[at : at + _PLACE_BYTES].rstrip(b" \0"), type=Place)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return None

    def close(self) -> None:
        """Unmap the file; what was written is in it."""
        self._memory.close()


class Recorded(NamedTuple):
    """What a process has recorded, in order of time; what cannot be true is left out."""

    facts: Facts
    batches: list[Batch]
    requests: list[Request]
    samples: list[Sample]
    places: dict[int, Place]


def read_all(folder: Path) -> list[Recorded]:
    """The records in a folder, in the order in which the processes began; those that are damaged are left out."""
    try:
        files = _files(folder)
    except OSError:
        return []
    return [recorded for _, path in files[-_MOST_READ:] if (recorded := read(path)) is not None]


def read(path: Path) -> Recorded | None:
    """What is in a file, also in one that is being written; None if it is damaged."""
    try:
        memory = _LAYOUT.open(path)
        facts = msgspec.json.decode(_LAYOUT.facts(memory), type=Facts)
    except (OSError, ValueError, RecursionError, msgspec.MsgspecError):
        return None
    record = Record(memory, facts)
    samples = [one for one in record.samples.entries() if 0 < one.at_ns < _LATEST_NS]
    numbers = sorted({sample.place for sample in samples})
    recorded = Recorded(
        facts,
        sorted((one for one in record.batches.entries() if _is_ordered(one[2:8]) and min(one) >= 0), key=_began),
        sorted((one for one in record.requests.entries() if _is_ordered(one[3:])), key=lambda one: one.asked_ns),
        sorted(samples),
        {number: _shown(place) for number in numbers if (place := record.place(number)) is not None},
    )
    record.close()
    return recorded


def _files(folder: Path) -> list[tuple[int, Path]]:
    """The process and the file of each record, in the order in which they began. Raises OSError."""
    named = ((match, path) for path in folder.iterdir() if (match := _NAME.fullmatch(path.name)))
    began = sorted((int(match[1]), int(match[2]), path) for match, path in named)
    return [(process, path) for _, process, path in began]


def _began(batch: Batch) -> int:
    return batch.began_ns


def _is_ordered(moments: tuple[int, ...]) -> bool:
    return moments[0] > 0 and moments[-1] < _LATEST_NS and list(moments) == sorted(moments)


def _shown(place: Place) -> Place:
    file, function, callee, callee_file = place.file, place.function, place.callee, place.callee_file
    if (filter_ := disclosure.current()) is not None:
        file, function = filter_.place(file, function)
        callee_file, callee = filter_.place(callee_file, callee) if callee else ("", "")
    return Place(sanitize(file), place.line, sanitize(function), sanitize(callee), sanitize(callee_file))


def _is_running(process: int) -> bool:
    with suppress(PermissionError):  # it is another user's
        try:
            os.kill(process, 0)
        except (ProcessLookupError, OverflowError):
            return False
    return True
