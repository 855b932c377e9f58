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

_LOOKS = 16  # at batches, after which a loader is known to bring no graphs
_SHARE = 1_000  # of a step's usual time, one part of which a look at a batch may take
_Item = TypeVar("_Item")


class Tally:
    """What has happened since the current step began; times in ns."""

    __slots__ = (
        *("thread", "wants_sizes", "waited_ns", "batches", "longest_wait_ns", "worker", "maker", "compile_ns"),
        *("compiles", "collect_ns", "collections", "nodes", "edges", "apart", "loading", "iterators", "looks"),
        *("look_ns", "_compile_began", "_collect_began"),
    )

    def __init__(self) -> None:
        self.thread = get_ident()  # that drives the steps
        self.wants_sizes = True  # whether looking at batches is worth its time
        self.loading = False  # one loader may iterate over another
        self.maker = UNKNOWN  # the worker that made the batch which was received last
        self.looks, self.look_ns = 0, 0
        self.iterators: list[int] = []  # of loaders, that began in this step
        self._compile_began = self._collect_began = 0
        self.clear()

    def clear(self) -> None:
        """A new step begins."""
        self.waited_ns = self.batches = self.longest_wait_ns = 0
        self.compile_ns = self.compiles = self.collect_ns = self.collections = 0
        self.worker = self.nodes = self.edges = UNKNOWN
        self.apart = False  # something that is no step happened in it
        self.iterators.clear()
        if self._compile_began:  # one that goes on belongs to both steps
            self._compile_began = perf_counter_ns()

    def compilation_begins(self, *_: object) -> None:
        """Called by torch."""
        self._compile_began = perf_counter_ns()

    def compilation_ends(self, *_: object) -> None:
        """Called by torch."""
        if self._compile_began:
            self.compile_ns += perf_counter_ns() - self._compile_began
            self.compiles += 1
            self._compile_began = 0

    def collection(self, phase: str, _: object) -> None:
        """Called by Python."""
        if phase == "start":
            self._collect_began = perf_counter_ns()
        elif self._collect_began:
            self.collect_ns += perf_counter_ns() - self._collect_began
            self.collections += 1
            self._collect_began = 0

    def waited(self, ns: int, worker: int = UNKNOWN) -> None:
        """The loop has waited for a batch."""
        self.waited_ns += ns
        if ns > self.longest_wait_ns:
            self.longest_wait_ns, self.worker = ns, worker

    def reconsider(self, usual_ns: int) -> None:
        """Is looking at batches worth its time, where a step usually takes so long?"""
        self.wants_sizes = self.looks <= _LOOKS or 0 < self.look_ns * _SHARE <= usual_ns

    def look_at(self, batch: Any) -> None:
        """Note how large the graphs in it are."""
        began = perf_counter_ns()
        nodes = edges = 0
        size = None
        with suppress(Exception):  # whatever a batch is, training continues
            size = graph_size((batch,))
            if size is not None:
                nodes, edges = int(sum(size.nodes.values())), int(sum(size.edges.values()))
        self.looks += 1
        if size is not None:
            self.nodes = nodes + max(self.nodes, 0) if size.nodes else self.nodes
            self.edges = edges + max(self.edges, 0)
            self.look_ns = perf_counter_ns() - began


class Sources:
    """All that adds to a tally; put into torch and Python at enter, and removed at exit."""

    def __init__(self, tally: Tally) -> None:
        self.tally = tally

    def __enter__(self) -> "Sources":
        with ExitStack() as stack:
            self._replace_functions(stack.enter_context(Replacements()))
            for callback in (Tally.collection, Tally.compilation_begins, Tally.compilation_ends, Tally.waited):
                leave_alone(callback)
            gc.callbacks.append(self.tally.collection)
            stack.callback(_forget, gc.callbacks, self.tally.collection)
            self.listen_to_compiler()
            stack.callback(self._stop_listening)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def listen_to_compiler(self) -> None:
        """Be called by Dynamo again, if it was reset."""
        from torch._dynamo.callback import callback_handler

        if self.tally.compilation_begins not in callback_handler.start_callbacks:
            callback_handler.register_start_callback(self.tally.compilation_begins)
            callback_handler.register_end_callback(self.tally.compilation_ends)

    def _stop_listening(self) -> None:
        from torch._dynamo.callback import callback_handler

        _forget(callback_handler.start_callbacks, self.tally.compilation_begins)
        _forget(callback_handler.end_callbacks, self.tally.compilation_ends)

    def _replace_functions(self, replacements: Replacements) -> None:
        tally, look_at = self.tally, out_of_dynamos_sight(self.tally.look_at)
        following: Callable[[Any], Any] = _BaseDataLoaderIter.__next__
        beginning: Callable[[Any], Any] = DataLoader.__iter__
        serialization: Any = torch.serialization
        saving: Callable[..., Any] = serialization._save
        processing: Callable[[Any, Any, int], Any] = _MultiProcessingDataLoaderIter._process_data

        def next_batch(iterator: Any) -> Any:
            if tally.loading or get_ident() != tally.thread:
                return following(iterator)
            tally.loading, tally.maker, worker = True, UNKNOWN, UNKNOWN
            if has_workers := getattr(iterator, "_num_workers", 0):
                with suppress(Exception):  # private names of torch's
                    worker = iterator._task_info[iterator._rcvd_idx][0]
            began = perf_counter_ns()
            try:
                batch = following(iterator)
                if has_workers and tally.maker != UNKNOWN:  # out of order, or of a stream: not whose turn it was
                    worker = tally.maker
            except StopIteration:
                worker = UNKNOWN  # none made a batch
                if id(iterator) in tally.iterators:  # all of its batches were in this step: an evaluation
                    tally.apart = True
                raise
            finally:
                tally.loading = False
                tally.waited(perf_counter_ns() - began, worker)
            tally.batches += 1
            if tally.wants_sizes:
                look_at(batch)
            return batch

        def process(iterator: Any, data: Any, worker: int) -> Any:
            if get_ident() == tally.thread:
                tally.maker = worker
            return processing(iterator, data, worker)

        def begin(loader: Any) -> Any:
            if tally.loading or get_ident() != tally.thread:
                return beginning(loader)
            tally.loading = True
            began = perf_counter_ns()
            try:
                iterator = beginning(loader)
            finally:
                tally.loading = False
                tally.waited(perf_counter_ns() - began)
            tally.iterators.append(id(iterator))
            return iterator

        def save(*args: Any, **kwargs: Any) -> Any:
            if get_ident() == tally.thread:
                tally.apart = True
            return saving(*args, **kwargs)

        replacements.put(_BaseDataLoaderIter, "__next__", next_batch)
        replacements.put(_MultiProcessingDataLoaderIter, "_process_data", process)
        replacements.put(DataLoader, "__iter__", begin)
        replacements.put(serialization, "_save", save)


class Batches(Generic[_Item]):
    """A loader of any kind, whose batches are waited for as those of a DataLoader are."""

    def __init__(self, loader: Iterable[_Item], tally: Tally) -> None:
        self._loader, self._tally = loader, tally
        self._look_at = out_of_dynamos_sight(tally.look_at)

    def __iter__(self) -> Iterator[_Item]:
        tally = self._tally
        batches = iter(self._loader)
        while True:
            if get_ident() != tally.thread:  # it fetches ahead: the loop does not wait here
                try:
                    batch = next(batches)
                except StopIteration:
                    return
                yield batch
                continue
            began = perf_counter_ns()
            tally.loading = True  # what waits for a DataLoader inside is part of this wait
            try:
                batch = next(batches)
            except StopIteration:
                return
            finally:
                tally.loading = False
                tally.waited(perf_counter_ns() - began)
            tally.batches += 1
            if tally.wants_sizes:
                self._look_at(batch)
            yield batch

    def __len__(self) -> int:
        return len(self._loader)  # type: ignore[arg-type]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)


def _forget(callbacks: list[Any], callback: Any) -> None:
    with suppress(ValueError):
        callbacks.remove(callback)
