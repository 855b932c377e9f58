"""The record of a watch: a file of fixed size, mapped into memory, that can be read at any moment.

It holds facts about the process and three rings (`tracekit.base.rings`): the last steps, the last slow ones, and the
last minutes.
"""

import mmap
import time
from enum import IntEnum, IntFlag
from pathlib import Path
from typing import NamedTuple

import msgspec

from tracekit.base.rings import Layout, Ring
from tracekit.errors.reading import BadWatchError

SCHEMA = "tracekit.watch/1"
STEPS, SLOW, MINUTES = 10_000, 1_000, 10_080  # entries of each ring; the minutes of a week
UNKNOWN = -1
_FACTS_BYTES = 8192  # of the facts as JSON, padded with spaces


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
    loader: str = ""  # name of the folder beside the record in which the workers of its loaders record themselves
    versions: dict[str, str] = {}  # python, torch, tracekit

    @property
    def stem(self) -> str:
        """What the names of its files begin with: `20261127-181502-4711-rank0`. The record is `STEM.watch`, a trace
        that it took `STEM-step1234-REASON.pt.trace.json.gz`."""
        at = time.strftime("%Y%m%d-%H%M%S", time.gmtime(self.began_ns / 1e9))
        return f"{at}-{self.process}-rank{self.rank}"


LAYOUT = Layout(SCHEMA, _FACTS_BYTES, ((Step, STEPS), (Step, SLOW), (Minute, MINUTES)))


class Record:
    """An open record. `create` makes one to write to, `open` one to read."""

    def __init__(self, memory: mmap.mmap, facts: Facts) -> None:
        self.facts, self._memory = facts, memory
        self.steps: Ring[Step] = LAYOUT.ring(memory, 0)
        self.slow: Ring[Step] = LAYOUT.ring(memory, 1)
        self.minutes: Ring[Minute] = LAYOUT.ring(memory, 2)

    @staticmethod
    def create(path: Path, facts: Facts) -> "Record":
        """Make the file, with room for all of it: where the disk is full, a write to mapped memory that has none would
        kill the process. Raises OSError, also if there is such a file already."""
        encoded = msgspec.json.encode(facts)
        if len(encoded) > _FACTS_BYTES:  # the script's path is all that can be long
            facts = msgspec.structs.replace(facts, script=facts.script[:1000])
            encoded = msgspec.json.encode(facts)
        return Record(LAYOUT.create(path, encoded), facts)

    @staticmethod
    def open(path: Path) -> "Record":
        """Read a record, also one that is being written. Raises BadWatchError."""
        try:
            memory = LAYOUT.open(path)
            facts = msgspec.json.decode(LAYOUT.facts(memory), type=Facts)
        except (OSError, ValueError, RecursionError, msgspec.MsgspecError) as error:
            raise BadWatchError(path, str(error)) from None
        return Record(memory, facts)

    def amend(self, **facts: str) -> None:
        """Write the record's facts anew, with these instead of its own."""
        amended = msgspec.structs.replace(self.facts, **facts)
        encoded = msgspec.json.encode(amended)
        if len(encoded) <= _FACTS_BYTES:
            self.facts = amended
            LAYOUT.amend_facts(self._memory, encoded)

    def close(self) -> None:
        """Unmap the file; what was written is in it."""
        self._memory.close()
