"""What happens in a step: waits for batches, compilations, garbage collections, files that are saved.

torch and Python tell it, each by a callback or a replaced function that adds to one tally. All run in the training's
own threads, also while Dynamo evaluates frames: it must leave every function of ours alone.
"""

import gc
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from threading import get_ident
from time import perf_counter_ns
from typing import Any, Generic, TypeVar

import torch
from torch.utils.data import DataLoader
from torch.utils.data.dataloader import _BaseDataLoaderIter, _MultiProcessingDataLoaderIter

from tracekit.capture.child.graph_log import graph_size
from tracekit.capture.child.replaced import Replacements, leave_alone, out_of_dynamos_sight
from tracekit.watched.record import UNKNOWN
from tracekit.watching.tally import Tally

_LOOKS = 16  # at batches, after which a loader is known to bring no graphs
_SHARE = 1_000  # of a step's usual time, one part of which a look at a batch may take
_Item = TypeVar("_Item")


class Sources:
    """All that adds to a tally; put into torch and Python at enter, and removed at exit."""

    def __init__(self, tally: Tally) -> None:
        self.tally = tally
        self.wants_sizes = True  # whether looking at batches is worth its time
        self._looks, self._look_ns = 0, 0

    def __enter__(self) -> "Sources":
        with ExitStack() as stack:
            self._replace_functions(stack.enter_context(Replacements()))
            for callback in (Sources._compilation_begins, Sources._compilation_ends):
                leave_alone(callback)
            gc.callbacks.append(self.tally.collection)
            stack.callback(_forget, gc.callbacks, self.tally.collection)
            from torch._dynamo.callback import callback_handler

            self._handler = callback_handler
            self._begins, self._ends = self._compilation_begins, self._compilation_ends
            self.listen_to_compiler()
            stack.callback(self._stop_listening)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def listen_to_compiler(self) -> None:
        """Be called by Dynamo again, if it was reset."""
        if self._begins not in self._handler.start_callbacks:
            self._handler.register_start_callback(self._begins)
            self._handler.register_end_callback(self._ends)

    def reconsider(self, usual_ns: int) -> None:
        """Is looking at batches worth its time, where a step usually takes so long?"""
        self.wants_sizes = self._looks <= _LOOKS or 0 < self._look_ns * _SHARE <= usual_ns

    def look_at(self, batch: Any) -> None:
        """Note how large the graphs in it are."""
        began, tally = perf_counter_ns(), self.tally
        nodes = edges = 0
        size = None
        with suppress(Exception):  # whatever a batch is, training continues
            size = graph_size((batch,))
            if size is not None:
                nodes, edges = int(sum(size.nodes.values())), int(sum(size.edges.values()))
        self._looks += 1
        if size is not None:
            tally.nodes = nodes + max(tally.nodes, 0) if size.nodes else tally.nodes
            tally.edges = edges + max(tally.edges, 0)
            self._look_ns = perf_counter_ns() - began

    def _compilation_begins(self, *_: object) -> None:
        self.tally.compile_began_ns = perf_counter_ns()

    def _compilation_ends(self, *_: object) -> None:
        tally = self.tally
        if tally.compile_began_ns:
            tally.compile_ns += perf_counter_ns() - tally.compile_began_ns
            tally.compiles += 1
            tally.compile_began_ns = 0

    def _stop_listening(self) -> None:
        _forget(self._handler.start_callbacks, self._begins)
        _forget(self._handler.end_callbacks, self._ends)

    def _replace_functions(self, replacements: Replacements) -> None:
        tally, look_at = self.tally, out_of_dynamos_sight(self.look_at)
        following: Callable[[Any], Any] = _BaseDataLoaderIter.__next__
        beginning: Callable[[Any], Any] = DataLoader.__iter__
        serialization: Any = torch.serialization
        processing: Callable[[Any, Any, int], Any] = _MultiProcessingDataLoaderIter._process_data

        begin_wait, end_wait = tally.begin_wait, tally.end_wait

        def next_batch(iterator: Any) -> Any:
            if not begin_wait():
                return following(iterator)
            batches, worker = 0, UNKNOWN
            try:
                if getattr(iterator, "_num_workers", 0):
                    with suppress(Exception):  # private names of torch's
                        worker = iterator._task_info[iterator._rcvd_idx][0]
                    batch = following(iterator)
                    if tally.maker != UNKNOWN:  # out of order, or of a stream: not whose turn it was
                        worker = tally.maker
                else:
                    batch = following(iterator)
                batches = 1
            except StopIteration:
                worker = UNKNOWN  # none made a batch
                if id(iterator) in tally.iterators:  # all of its batches were in this step: an evaluation
                    tally.apart = True
                raise
            finally:
                end_wait(batches, worker)
            if self.wants_sizes:
                look_at(batch)
            return batch

        def process(iterator: Any, data: Any, worker: int) -> Any:
            if get_ident() == tally.thread:
                tally.maker = worker
            return processing(iterator, data, worker)

        def begin(loader: Any) -> Any:
            if not begin_wait():
                return beginning(loader)
            try:
                iterator = beginning(loader)
            finally:
                end_wait(0, UNKNOWN)
            tally.iterators.append(id(iterator))
            return iterator

        def apart(saving: Callable[..., Any]) -> Callable[..., Any]:
            def save(*args: Any, **kwargs: Any) -> Any:
                if get_ident() == tally.thread:
                    tally.apart = True
                return saving(*args, **kwargs)

            return save

        replacements.put(_BaseDataLoaderIter, "__next__", next_batch)
        replacements.put(_MultiProcessingDataLoaderIter, "_process_data", process)
        replacements.put(DataLoader, "__iter__", begin)
        for name in ("_save", "_legacy_save"):  # the second writes files without zip
            if saving := getattr(serialization, name, None):
                replacements.put(serialization, name, apart(saving))


class Batches(Generic[_Item]):
    """A loader of any kind, whose batches are waited for as those of a DataLoader are."""

    def __init__(self, loader: Iterable[_Item], sources: Sources) -> None:
        self._loader, self._sources = loader, sources
        self._look_at = out_of_dynamos_sight(sources.look_at)

    def __iter__(self) -> Iterator[_Item]:
        tally = self._sources.tally
        batches = iter(self._loader)
        while True:
            if not tally.begin_wait():  # it fetches ahead: the loop does not wait here
                try:
                    batch = next(batches)
                except StopIteration:
                    return
                yield batch
                continue
            got = 0
            try:
                batch = next(batches)  # what waits for a DataLoader inside is part of this wait
                got = 1
            except StopIteration:
                return
            finally:
                tally.end_wait(got, UNKNOWN)
            if self._sources.wants_sizes:
                self._look_at(batch)
            yield batch

    def __len__(self) -> int:
        return len(self._loader)  # type: ignore[arg-type]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)


def _forget(callbacks: list[Any], callback: Any) -> None:
    with suppress(ValueError):
        callbacks.remove(callback)
