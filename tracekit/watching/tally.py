"""What has happened since the current step began, as numbers; times in ns.

In C (`native/steps.c`), it also notes the end of a step that nothing is to be said of, and writes it to the record:
Python takes several times as long for what a step has driven out of the processor's caches. Without it, Python notes
all steps.
"""

from threading import get_ident
from time import perf_counter_ns
from typing import Any

from tracekit.watched.record import UNKNOWN


class PlainTally:
    """The same in Python."""

    __slots__ = (
        *("thread", "number", "began_ns", "unix_ns", "due_ns", "usual_ns", "limit_ns", "left", "peak_bytes"),
        *("waited_ns", "batches", "longest_wait_ns", "worker", "maker", "wait_began_ns"),
        *("compile_ns", "compiles", "compile_began_ns", "collect_ns", "collections", "collect_began_ns"),
        *("nodes", "edges", "schedstat", "processor_ns", "queued_ns", "unread_ns", "off_core_ns"),
        *("has_marks", "is_asked", "apart", "loading", "optimizer", "iterators", "attend", "clock"),
        "waiting",
    )

    def __init__(self) -> None:
        self.thread = get_ident()  # that drives the steps
        self.number = self.began_ns = self.unix_ns = 0  # of the current step; what is added to a time for a unix time
        self.due_ns = 0  # when there is more to do at the end of a step than to note it
        self.left = 0  # steps to note here until there is more to do
        self.usual_ns = self.limit_ns = UNKNOWN  # of such steps, as the history has it
        self.peak_bytes = self.maker = UNKNOWN  # the worker that made the batch which was received last
        self.loading = False  # one loader may iterate over another
        self.has_marks = False  # optimizers end no steps
        self.is_asked = False  # the end of this step is not to be noted here: a profiler runs, or is to run
        self.optimizer: Any = None  # a weak reference to the one whose steps end steps
        self.iterators: list[int] = []  # of loaders, that began in this step
        self.compile_began_ns = self.collect_began_ns = self.wait_began_ns = 0
        self.attend: Any = None  # called after a step was noted when it is due, or none is left
        self.clock: Any = None  # in tests, what the compiled one asks instead of the system
        self.waiting = 0  # steps that the GPU has not passed yet, where the tally asks it
        # Of the thread's clock.
        self.schedstat = -1
        self.processor_ns = self.queued_ns = self.unread_ns = self.off_core_ns = 0
        self.clear()

    def end(self, optimizer: object) -> bool:
        """A step ends, of this optimizer or at a mark (None). True if nothing is left to do; False if it is not noted.

        In C, a step is noted unless something is to be said of it: it took longer than the limit, something happened
        in it that is no step, somebody asked for its end, or another thread drives it. It is written as one that is
        not slow."""
        return optimizer is not None and self.has_marks

    def clear(self) -> None:
        """A new step begins."""
        self.waited_ns = self.batches = self.longest_wait_ns = 0
        self.compile_ns = self.compiles = self.collect_ns = self.collections = 0
        self.worker = self.nodes = self.edges = UNKNOWN
        self.apart = False  # something that is no step happened in it
        self.iterators.clear()
        if self.compile_began_ns:  # one that goes on belongs to both steps
            self.compile_began_ns = perf_counter_ns()

    def begin_wait(self) -> bool:
        """The loop waits for a batch; False if it does so already, or this is another thread."""
        if self.loading or get_ident() != self.thread:
            return False
        self.loading, self.maker, self.wait_began_ns = True, UNKNOWN, perf_counter_ns()
        return True

    def end_wait(self, batches: int, worker: int) -> None:
        """The wait is over, for so many batches, which this worker made."""
        waited_ns = perf_counter_ns() - self.wait_began_ns
        self.loading = False
        self.waited_ns += waited_ns
        self.batches += batches
        if waited_ns > self.longest_wait_ns:
            self.longest_wait_ns, self.worker = waited_ns, worker

    def collection(self, phase: str, _: object) -> None:
        """Called by Python when it begins to collect garbage, and when that ends."""
        if phase == "start":
            self.collect_began_ns = perf_counter_ns()
        elif self.collect_began_ns:
            self.collect_ns += perf_counter_ns() - self.collect_began_ns
            self.collections += 1
            self.collect_began_ns = 0

    def write_to(self, memory: Any, count_at: int, ring_at: int, capacity: int) -> bool:
        """Write steps to this ring of a record, of which these are the places in bytes; whether that is done."""
        return False

    def release(self) -> None:
        """Write to no record any more, which can be closed then."""


try:
    from tracekit.native._steps import Tally as Tally  # noqa: PLC0414 - for mypy, this exports it
except ImportError:
    Tally = PlainTally  # type: ignore[assignment,misc]
