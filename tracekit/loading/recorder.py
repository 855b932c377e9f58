"""Records what a worker of a DataLoader does with its time, from inside the worker.

Nothing of the dataset is wrapped: a batch begins when its indices arrive in the worker's queue, collating begins when
`collate_fn` is called, and the batch is made when the worker puts it into the queue of results. A thread of that queue
then pickles it and writes it to a pipe. Another thread looks at which line the worker is: 200 times a second or, on a
system where waking up is dear, as often as costs less than a hundredth of the time.
"""

import multiprocessing.queues
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

from tracekit.loading.record import ELSEWHERE, Batch, Facts, Place, Record, Sample
from tracekit.vocabulary.code_owner import GENERATED, PYTHON, TORCH, TRACEKIT, USER, CodeOwners

_EVERY_S = 0.005
_MOST_OF_TIME = 0.003  # that the sampler itself may compute; to make way for it costs the worker about as much again
_CHECKED_EVERY = 16  # samples
_LAST_SENT_WITHIN_S = 0.1  # what nobody receives is never sent
_MOST_OF_PATH, _MOST_OF_NAME = 160, 60  # characters: the end is kept
_MOST_LOOKED_AT = 256  # objects of a batch, in which its tensors are looked for
_MOST_SIZE = 1 << 62  # bytes: an array that repeats one number may claim any
_DEEPEST = 6  # levels of nested objects, of which PyG's data have four
# Whose line is named, the best first; libraries come between the user and torch.
_LIBRARY = 1
_RANKS = {USER: 0, GENERATED: 2, TORCH: 2, PYTHON: 3}


class WorkerRecorder:
    """Records the worker that this process is; `queues` are wrapped in this process alone."""

    def __init__(self, folder: Path, *, worker: int, workers: int, rank: int, loader: int = 0) -> None:
        facts = Facts(
            process=os.getpid(),
            began_ns=time.time_ns(),
            worker=worker,
            workers=workers,
            loader=loader,
            rank=rank,
            cores=cores(),
        )
        self._record = Record.create(folder, facts)
        self._free_ns = time.time_ns()
        self._number = self._idle_ns = self._began_ns = self._collating_ns = 0
        self._is_making = False
        # What was put into the queue of results and is not sent yet, each with its identity; None is no batch.
        self._unsent: deque[tuple[int, Batch | None]] = deque()
        self._pickling_ns = self._sending_ns = 0
        self._sampler = _LineSampler(self._record, lambda: self._is_making)

    def wrap_queues(self, indices: Any, results: Any) -> None:
        """Note when indices arrive in one queue, and when batches are put into the other and leave it."""
        get, put, send = indices.get, results.put, results._send_bytes

        def get_indices(*args: Any, **kwargs: Any) -> Any:
            self._is_making = False  # also where a worker whose data have ended has passed indices over
            return self._got(get(*args, **kwargs))

        def put_batch(entry: Any, *args: Any, **kwargs: Any) -> None:
            self._made(entry)
            put(entry, *args, **kwargs)
            self._free_ns = time.time_ns()

        def send_bytes(content: Any, *args: Any) -> None:
            self._sending_ns = time.time_ns()
            send(content, *args)
            self._sent()

        indices.get, results.put, results._send_bytes = get_indices, put_batch, send_bytes
        multiprocessing.queues._ForkingPickler = _Pickler(  # type: ignore[attr-defined]
            multiprocessing.queues._ForkingPickler,  # type: ignore[attr-defined]
            self._pickles,
        )
        self._sampler.start()

    def wrap_collate(self, collate: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """The function, noting when it begins."""

        def collate_noted(samples: Any) -> Any:
            self._collating_ns = time.time_ns()
            return collate(samples)

        return collate_noted

    def finish(self) -> None:
        """Let the thread that sends note the last batch: the loop may have it, and end this process, before that."""
        given_up_s = time.monotonic() + _LAST_SENT_WITHIN_S
        while self._unsent and time.monotonic() < given_up_s:
            time.sleep(0.001)

    def _got(self, entry: Any) -> Any:
        if type(entry) is tuple and len(entry) == 2 and isinstance(entry[0], int):
            self._began_ns = time.time_ns()
            self._number, self._idle_ns = entry[0], self._began_ns - self._free_ns
            self._collating_ns, self._is_making = 0, True
        return entry

    def _made(self, entry: Any) -> None:
        """Note what is put: a batch; or word that a new epoch begins, that the data have ended, or what has failed."""
        made_ns, batch = time.time_ns(), None
        if self._is_making:
            self._is_making = False
            data = entry[1]
            if not str(type(data).__module__).startswith(("torch._utils", "torch.utils.data")):
                size, tensors = _known_size_of(data)
                began_ns, number, idle_ns = self._began_ns, self._number, self._idle_ns
                collating_ns = self._collating_ns or made_ns
                batch = Batch(number, idle_ns, began_ns, collating_ns, made_ns, 0, 0, 0, size, tensors)
        self._unsent.append((id(entry), batch))

    def _pickles(self, entry: Any) -> None:
        if self._unsent and self._unsent[0][0] == id(entry):
            self._pickling_ns = time.time_ns()

    def _sent(self) -> None:
        _, batch = self._unsent[0]
        if batch is not None:
            pickling_ns = max(self._pickling_ns, batch.made_ns)
            sending_ns = max(self._sending_ns, pickling_ns)
            sent_ns = max(time.time_ns(), sending_ns)
            self._record.batches.append(batch._replace(pickling_ns=pickling_ns, sending_ns=sending_ns, sent_ns=sent_ns))
        self._unsent.popleft()


class _Pickler(NamedTuple):
    """In the place of the class with which queues pickle: notes when it begins."""

    kind: Any
    begins: Callable[[Any], None]

    def dumps(self, entry: Any, *args: Any) -> Any:
        self.begins(entry)
        return self.kind.dumps(entry, *args)

    def loads(self, *args: Any, **kwargs: Any) -> Any:
        return self.kind.loads(*args, **kwargs)


class _LineSampler:
    """Samples the line of the thread that makes it, while that makes a batch."""

    def __init__(self, record: Record, is_making: Callable[[], bool]) -> None:
        self._record, self._is_making = record, is_making
        self._thread = threading.get_ident()
        self._outermost = sys._getframe(2)  # the caller of the recorder: a forked worker has its parent's frames, too
        self._ranks: dict[CodeType, int] = {}
        self._numbers: dict[tuple[CodeType, int, CodeType | None], int] = {}

    def start(self) -> None:
        threading.Thread(target=self._run_while_it_can, name="tracekit_line_sampler", daemon=True).start()

    def _run_while_it_can(self) -> None:
        with suppress(Exception):  # what is missing then are lines; the worker's own output is the user's
            self._run()

    def _run(self) -> None:
        self._owners = CodeOwners()
        every_s = _EVERY_S
        while True:
            began_s = time.thread_time()
            for _ in range(_CHECKED_EVERY):
                time.sleep(every_s)
                if self._is_making():
                    frame = sys._current_frames().get(self._thread)
                    self._record.samples.append(Sample(time.time_ns(), self._number_of(frame)))
                    frame = None  # otherwise, it would keep the user's objects alive until the next sample
            every_s = max(_EVERY_S, (time.thread_time() - began_s) / _CHECKED_EVERY / _MOST_OF_TIME)

    def _number_of(self, frame: FrameType | None) -> int:
        """The number of the place to name: the innermost frame of those whose owner ranks first."""
        best: tuple[CodeType, int, CodeType | None] | None = None
        best_rank, inner = 9, None
        while frame is not None and frame is not self._outermost:
            code = frame.f_code
            rank = self._ranks.get(code)
            if rank is None:
                owner = self._owners.of(code.co_filename)
                rank = self._ranks[code] = 9 if owner == TRACEKIT else _RANKS.get(owner, _LIBRARY)
            if rank < best_rank:
                best_rank, best = rank, (code, frame.f_lineno or 0, inner)
                if not rank:
                    break
            inner, frame = code, frame.f_back
        if best is None:
            return ELSEWHERE
        number = self._numbers.get(best)
        if number is None:
            code, line, called = best
            callee, callee_file = (called.co_name, self._path(called)) if called is not None else ("", "")
            place = Place(self._path(code), line, code.co_name[-_MOST_OF_NAME:], callee[-_MOST_OF_NAME:], callee_file)
            number = self._numbers[best] = self._record.number_of(place)
        return number

    def _path(self, code: CodeType) -> str:
        """The path as the profiler writes it, below the folder that it was imported from."""
        return self._owners.relative(code.co_filename)[-_MOST_OF_PATH:]


def cores() -> int:
    """How many this process may use; 0 if the system does not tell."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 0


def size_of(batch: Any) -> tuple[int, int]:
    """The bytes of the tensors and arrays in a batch, and how many they are, as far as they are found; nothing is
    computed."""
    size = tensors = looked_at = 0
    pending: deque[tuple[Any, int]] = deque([(batch, 0)])
    while pending and looked_at < _MOST_LOOKED_AT:
        value, depth = pending.popleft()
        looked_at += 1
        try:
            size_of_value = getattr(value, "nbytes", None)
        except (RuntimeError, NotImplementedError):  # of a sparse tensor
            size_of_value = None
        if type(size_of_value) is int:
            size, tensors = size + size_of_value, tensors + 1
        elif depth < _DEEPEST:
            pending.extend((part, depth + 1) for part in _parts(value))
    return size, tensors


def _known_size_of(batch: Any) -> tuple[int, int]:
    """The same of whatever a user's objects do when they are asked for what they have: training continues."""
    try:
        size, tensors = size_of(batch)
    except Exception:
        return 0, 0
    return min(max(size, 0), _MOST_SIZE), tensors


def _parts(value: Any) -> Iterator[Any]:
    if isinstance(value, str | bytes | int | float):
        return iter(())
    if isinstance(value, Mapping):
        return iter([*value.values()][:_MOST_LOOKED_AT])
    if isinstance(value, Sequence):
        return iter(value[:_MOST_LOOKED_AT])
    return iter([*getattr(value, "__dict__", {}).values()][:_MOST_LOOKED_AT])
