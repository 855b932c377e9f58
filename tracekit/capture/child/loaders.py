"""Has the workers of all DataLoaders that begin meanwhile record themselves, and the loop its requests for batches.

The function that a worker runs is replaced while the loader's iterator starts it, whichever way its process starts, so
that a worker finds its queues, its `collate_fn` and its number in its own arguments. Everything else in it – the user's
`worker_init_fn`, the seeds, the order of batches – is torch's own. What cannot be recorded runs as if it were not.
"""

import inspect
import logging
import mmap
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from torch.utils.data import dataloader
from torch.utils.data._utils import worker as torch_worker

from tracekit.capture.child.replaced import Replacements, out_of_dynamos_sight
from tracekit.loading.record import Facts, Record, Request
from tracekit.loading.recorder import WorkerRecorder, cores

_worker_loop: Callable[..., None] = torch_worker._worker_loop  # torch's own, also in a worker that was forked
_FAILURE_BYTES = 512
_log = logging.getLogger("tracekit")


class RecordedLoaders:
    """While entered, loaders record themselves in that folder, which is made when the first one begins."""

    def __init__(self, folder: Path, rank: int = 0) -> None:
        self._folder, self._rank = folder, rank
        self._replacements = Replacements()
        self._record: Record | None = None
        self._process = os.getpid()  # a fork may have loaders, but it is not the loop
        self._worker_loop = _WorkerLoop(str(folder), rank)
        self._failed = self._has_warned = False
        self._awaited = threading.local()  # the request that a thread waits for: number, worker, and when it was got

    def __enter__(self) -> "RecordedLoaders":
        iterator = dataloader._MultiProcessingDataLoaderIter
        next_data, get_data, process_data = iterator._next_data, iterator._get_data, iterator._process_data
        begin, worker_loop = iterator.__init__, self._worker_loop
        returned = out_of_dynamos_sight(self._returned)

        def recorded_begin(begun: Any, loader: Any, *args: Any, **kwargs: Any) -> None:
            worker_loop.loader = id(loader)  # the workers that begin now take it with them
            begin(begun, loader, *args, **kwargs)

        def recorded_next_data(loader: Any) -> Any:
            self._awaited.worker, self._awaited.processor_ns, asked_ns = None, time.thread_time_ns(), time.time_ns()
            data = next_data(loader)
            returned(loader, asked_ns)
            return data

        def recorded_get_data(loader: Any) -> Any:
            received = get_data(loader)
            self._awaited.received = received[0]
            return received

        def recorded_process_data(loader: Any, data: Any, worker: int) -> Any:
            awaited = None
            with suppress(AttributeError):  # a loader may have its own way to the next batch
                # In order, it is the batch before the next one; out of order, the one that was just received.
                in_order = getattr(loader, "_in_order", True)
                awaited = {
                    "number": loader._rcvd_idx - 1 if in_order else getattr(self._awaited, "received", -1),
                    "got_ns": time.time_ns(),
                    "processor_ns": time.thread_time_ns() - self._awaited.processor_ns,
                    "worker": worker,
                }
            processed = process_data(loader, data, worker)
            if awaited is not None:  # only now: a sampler that draws from a loader of its own has asked for another
                vars(self._awaited).update(awaited)
            return processed

        self._replacements.put_all(torch_worker, _worker_loop=worker_loop)
        self._replacements.put(iterator, "__init__", recorded_begin)
        self._replacements.put(iterator, "_next_data", recorded_next_data)
        self._replacements.put(iterator, "_get_data", recorded_get_data)
        self._replacements.put(iterator, "_process_data", recorded_process_data)
        return self

    def __exit__(self, *_: object) -> None:
        self._replacements.undo()

    def _returned(self, loader: Any, asked_ns: int) -> None:
        awaited = self._awaited
        if awaited.worker is None or self._failed or os.getpid() != self._process:
            return
        try:
            if self._record is None:
                facts = Facts(process=os.getpid(), began_ns=asked_ns, rank=self._rank, cores=cores())
                self._record = Record.create(self._folder, facts)
            process, returned_ns = loader._workers[awaited.worker].pid, max(time.time_ns(), awaited.got_ns)
            self._record.requests.append(
                Request(process, awaited.number, awaited.processor_ns, asked_ns, awaited.got_ns, returned_ns)
            )
        except Exception as error:  # a training must not end because it is recorded
            self._failed = True
            self._warn("the data loader", error)
        if (reason := self._worker_loop.failure) is not None and not self._has_warned:
            self._warn("a worker of the data loader", reason)

    def _warn(self, of: str, reason: object) -> None:
        if not self._has_warned:
            self._has_warned = True
            _log.warning("what %s does is not recorded: %s", of, reason)


class _WorkerLoop:
    """In the place of torch's function of the same name; it can be sent to a process that is not a fork."""

    def __init__(self, folder: str, rank: int) -> None:
        self._folder, self._rank = folder, rank
        self.loader = 0
        self._failure: mmap.mmap | None = mmap.mmap(-1, _FAILURE_BYTES)  # forks share it

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_failure": None}

    @property
    def failure(self) -> str | None:
        """Why a worker could not be recorded, if one could not."""
        if self._failure is None or not self._failure[0]:
            return None
        return self._failure[:].rstrip(b"\0").decode(errors="replace")

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        bound = inspect.signature(_worker_loop).bind(*args, **kwargs)
        given = bound.arguments
        recorder = None
        try:
            recorder = WorkerRecorder(
                Path(self._folder),
                worker=given["worker_id"],
                workers=given["num_workers"],
                rank=self._rank,
                loader=self.loader,
            )
            given["collate_fn"] = recorder.wrap_collate(given["collate_fn"])
            recorder.wrap_queues(given["index_queue"], given["data_queue"])
        except Exception as error:  # a worker must not end because it is recorded
            if self._failure is not None:  # the loop says it once: workers of each epoch would say it again
                reason = (str(error) or type(error).__name__).encode(errors="replace")
                self._failure[:] = reason[:_FAILURE_BYTES].ljust(_FAILURE_BYTES, b"\0")
            elif not given["worker_id"]:  # one of each epoch
                _log.warning("what a worker of the data loader does is not recorded: %s", error)
        _worker_loop(*bound.args, **bound.kwargs)
        if recorder is not None:
            recorder.finish()
