"""The record of a watch: a file of fixed size, mapped into memory, that can be read at any moment.

It holds facts about the process and three rings: the last steps, the last slow ones, and the last minutes. An entry is
written before the count that makes it part of its ring. What a process killed with SIGKILL has written so far is
therefore whole, but for the oldest entry of a ring that has come round, which may be half overwritten: it is not read.
"""

import mmap
import os
import struct
import time
from collections.abc import Sequence
from enum import IntEnum, IntFlag
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

import msgspec

from tracekit.errors.reading import BadWatchError

SCHEMA = "tracekit.watch/1"
STEPS, SLOW, MINUTES = 10_000, 1_000, 10_080  # entries of each ring; the minutes of a week
UNKNOWN = -1
_MAGIC = b"tracekit.watch/1".ljust(24, b"\n")
_FACTS_BYTES = 8192  # of the facts as JSON, padded with spaces
_COUNTS = struct.Struct("<3Q")
_COUNTS_AT = len(_MAGIC) + _FACTS_BYTES
_RINGS_AT = _COUNTS_AT + _COUNTS.size


class Flag(IntFlag):
    """What is noted about a step."""

    SLOW = 1
    TRACED = 2  # the profiler was running: its duration is not like that of others
    APART = 4  # something that is no step happened in it, such as an evaluation or a checkpoint
    TRIGGERED = 8  # it made the watch trace the steps after it
    PERIODIC = 16  # it would be slow, but others were as slow at the same interval before it


class Cause(IntEnum):
    """What made a step slow, as far as the watch itself knows."""

    UNKNOWN = 0
    BATCH = 1  # the loop waited for a batch that came late
    COMPILATION = 2  # something was compiled anew
    COLLECTION = 3  # Python collected garbage
    MEMORY = 4  # the allocator freed its cache, and asked the device again
    LARGER = 5  # its batch was larger
    RANK = 6  # another rank was late
    OFF_PROCESSOR = 7  # its thread neither computed nor waited for anything that the watch knows: it slept, or read
    QUEUED = 8  # its thread was ready, and other work had its core
    LONGER_WORK = 9  # its thread computed longer
    TREND = 10  # steps get longer and longer


class Step(NamedTuple):
    """One step. Times are in ns; UNKNOWN is what was not observed."""

    number: int  # from 0
    began_ns: int  # unix ns
    step_ns: int  # by the facts' clock; UNKNOWN where the GPU's events were not yet over when they had to be reused
    host_ns: int  # from its begin to its end on the host
    waited_ns: int  # for batches
    batches: int
    compile_ns: int
    compiles: int
    collect_ns: int  # of Python's garbage
    collections: int
    retries: int  # how often the allocator freed its cache to get memory
    peak_bytes: int = UNKNOWN  # allocated on the GPU so far, or resident on the host
    processor_ns: int = UNKNOWN  # of the thread that drives the steps
    queued_ns: int = UNKNOWN  # in which this thread was ready but had no core
    nodes: int = UNKNOWN  # of its batch
    edges: int = UNKNOWN
    worker: int = UNKNOWN  # of the loader, that made the batch which was waited for longest
    usual_ns: int = UNKNOWN  # what was usual when it ended; UNKNOWN as long as nothing was
    limit_ns: int = UNKNOWN  # beyond which it is slow
    flags: Flag = Flag(0)
    cause: Cause = Cause.UNKNOWN


class Minute(NamedTuple):
    """The steps that ended in one minute, so that hours remain when single steps are gone. Times are in ns."""

    began_ns: int  # unix ns
    first: int  # number of its first step
    steps: int
    least_ns: int
    median_ns: int
    most_ns: int
    most_number: int  # of the step that took longest
    slow: int  # steps
    waited_ns: int  # for batches, of all steps
    compile_ns: int  # of all steps


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What is watched."""

    schema: str = SCHEMA
    process: int
    began_ns: int  # unix ns
    script: str = ""
    device: str = "cpu"  # as in "cuda:0"
    device_name: str = ""
    clock: str = "perf_counter"  # or "cuda events"
    rank: int = 0
    ranks: int = 1
    step: str = ""  # what a step is: "1 step of Adam", "a batch of Lightning's"
    job: str = ""  # the same on all ranks of one start
    versions: dict[str, str] = {}  # python, torch, tracekit

    @property
    def stem(self) -> str:
        """What the names of its files begin with: `20261127-181502-4711-rank0`. The record is `STEM.watch`, a trace
        that it took `STEM-step1234-REASON.pt.trace.json.gz`."""
        at = time.strftime("%Y%m%d-%H%M%S", time.gmtime(self.began_ns / 1e9))
        return f"{at}-{self.process}-rank{self.rank}"


_Entry = TypeVar("_Entry", Step, Minute)


class _Ring(Generic[_Entry]):
    """Entries of one kind at a place in the file."""

    def __init__(self, memory: mmap.mmap, which: int, at: int, capacity: int, entry: type[_Entry]) -> None:
        self._memory, self._at, self._capacity = memory, at, capacity
        self._entry: type[_Entry] = entry
        self._packed = struct.Struct(f"<{len(entry._fields)}q")
        self._count_at = _COUNTS_AT + 8 * which

    def append(self, entry: Sequence[int]) -> None:
        """Write an entry over the oldest one, then count it."""
        count = self.count
        self._packed.pack_into(self._memory, self._at + count % self._capacity * self._packed.size, *entry)
        struct.pack_into("<Q", self._memory, self._count_at, count + 1)

    @property
    def count(self) -> int:
        """How many entries were ever written."""
        count: int = struct.unpack_from("<Q", self._memory, self._count_at)[0]
        return count

    def entries(self) -> list[_Entry]:
        """Those that are left, the oldest first."""
        count = self.count
        first = 0 if count < self._capacity else count - self._capacity + 1
        read = (
            self._packed.unpack_from(self._memory, self._at + index % self._capacity * self._packed.size)
            for index in range(first, count)
        )
        return [self._entry._make(values) for values in read]


def _ring_bytes(capacity: int, entry: type[Step] | type[Minute]) -> int:
    return capacity * 8 * len(entry._fields)


_SIZE = _RINGS_AT + _ring_bytes(STEPS, Step) + _ring_bytes(SLOW, Step) + _ring_bytes(MINUTES, Minute)


class Record:
    """An open record. `create` makes one to write to, `open` one to read."""

    def __init__(self, memory: mmap.mmap, facts: Facts) -> None:
        self.facts, self._memory = facts, memory
        at = _RINGS_AT
        self.steps = _Ring(memory, 0, at, STEPS, Step)
        at += _ring_bytes(STEPS, Step)
        self.slow = _Ring(memory, 1, at, SLOW, Step)
        at += _ring_bytes(SLOW, Step)
        self.minutes = _Ring(memory, 2, at, MINUTES, Minute)

    @staticmethod
    def create(path: Path, facts: Facts) -> "Record":
        """Make the file, of which most takes no room on the disk until it is written. Raises OSError, also if there is
        such a file already."""
        encoded = msgspec.json.encode(facts)
        if len(encoded) > _FACTS_BYTES:  # the script's path is all that can be long
            facts = msgspec.structs.replace(facts, script=facts.script[:1000])
            encoded = msgspec.json.encode(facts)
        part = path.with_name(f"{path.name}.{os.getpid()}.part")
        try:
            with open(part, "xb+") as file:
                file.write(_MAGIC + encoded.ljust(_FACTS_BYTES))
                file.truncate(_SIZE)
                file.flush()
                memory = mmap.mmap(file.fileno(), _SIZE)
            os.link(part, path)  # unlike a rename, it never replaces
        finally:
            part.unlink(missing_ok=True)
        return Record(memory, facts)

    @staticmethod
    def open(path: Path) -> "Record":
        """Read a record, also one that is being written. Raises BadWatchError."""
        try:
            with open(path, "rb") as file:
                memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise BadWatchError(path, str(error)) from None
        if memory[: len(_MAGIC)] != _MAGIC:
            raise BadWatchError(path, "it does not begin like a record of a watch")
        if len(memory) != _SIZE:
            raise BadWatchError(path, f"it has {len(memory):,} bytes instead of {_SIZE:,}")
        try:
            facts = msgspec.json.decode(memory[len(_MAGIC) : _COUNTS_AT].rstrip(), type=Facts)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise BadWatchError(path, str(error)) from None
        return Record(memory, facts)

    def close(self) -> None:
        """Unmap the file; what was written is in it."""
        self._memory.close()
