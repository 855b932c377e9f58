"""What is done at the end of each step: what was seen goes to the history, and the next steps are traced if need be.

It is in the training's way for as long as it runs, so it does no more than it must, and rarely what takes longer.
"""

import logging
import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from threading import get_ident
from time import perf_counter_ns, time_ns

import msgspec

from tracekit.base.atomic import reason as why_of
from tracekit.errors import TracekitError
from tracekit.watched import Flag, Record, registry
from tracekit.watched.record import UNKNOWN
from tracekit.watched.registry import Answer, Desk, Entry, Request
from tracekit.watching import process
from tracekit.watching.clocks import EVENTS, Clock, GpuClock, HostClock, TallyClock, ThreadClock
from tracekit.watching.history import History
from tracekit.watching.memory import Memory
from tracekit.watching.sources import Sources
from tracekit.watching.tracer import BUSY, Tracer

STEPS_TOGETHER = 64  # steps that are judged, and written, at a time, if none is slow; at the latest after a look
_TRACED, _APART = int(Flag.TRACED), int(Flag.APART)  # plain numbers, which are faster
_LOOK_NS = 500_000_000  # between two looks at memory, and for requests; then, steps are written as well
_RARER_LOOKS = 8  # times as long in between, where each step is written when it ends
_MARK = "a call of step()"  # what a step is
_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")
_REASON_LENGTH = 40
_SECOND_NS, _MINUTE_NS = 1_000_000_000, 60_000_000_000

_log = logging.getLogger("tracekit")


class Observation:
    """What one watch sees. The record begins where the first step ends: only then are device and rank known."""

    def __init__(self, folder: Path, loader: str, step: str, sources: Sources, tracer: Tracer) -> None:
        self.path: Path | None = None  # of the record
        self._reason = ""  # for which somebody asked for a trace
        self._slow = ""  # for which a slow step is to be followed by one
        self._slow_number = 0  # of that step: on a GPU, later ones have ended until it is known to be slow
        self._folder, self._loader, self._step = folder, loader, step
        self._sources, self._tracer = sources, tracer
        self._history: History | None = None
        self._desk: Desk | None = None
        self._request: Request | None = None  # that the current trace answers
        self._ended: list[tuple[Sequence[int], int]] = []  # not judged yet: several together are judged faster
        self._memory: Memory | None = None
        tally = sources.tally
        self._thread_clock = ThreadClock(tally)
        tally.began_ns = tally.due_ns = perf_counter_ns()
        tally.unix_ns = time_ns() - tally.began_ns
        tracer.noticed = self._profiler_noticed
        self._is_profiled = False  # a profiler began or ended in this step
        self._tally_writes = False  # it notes steps, too
        self._tally_clock: TallyClock | None = None  # where it also asks a GPU
        self._minute_ns = tally.began_ns + _MINUTE_NS
        self._told: set[str] = set()

    def end(self, optimizer: object, all_ranks: bool) -> bool:
        """A step ends here, of this optimizer if there is one; False if this rank is not to be watched. Raises OSError
        if the record cannot be made."""
        now = perf_counter_ns()
        tally, tracer = self._sources.tally, self._tracer
        tally.is_asked = False
        host_ns = now - tally.began_ns
        if get_ident() == tally.thread:
            on_core_ns, queued_ns = self._thread_clock.passed(host_ns)
        else:  # another thread drives the steps from now on
            on_core_ns = queued_ns = UNKNOWN
            tally.thread = get_ident()
            self._thread_clock.close()
            self._thread_clock = ThreadClock(tally)
        if self._history is None:
            if not all_ranks and process.rank()[0]:
                return False
            self._start(optimizer)
            assert self._history is not None
        history, retries = self._history, 0
        if is_due := now > tally.due_ns or host_ns > history.limit_ns:
            retries = self._look(now)
        is_tracing = tracer.is_tracing
        flags = _TRACED if is_tracing or self._is_profiled or tracer.is_noticed else 0
        self._is_profiled = False
        if tally.apart:
            flags |= _APART
        seen = (
            *(tally.number, tally.unix_ns + tally.began_ns, host_ns, tally.waited_ns, tally.batches),
            *(tally.compile_ns, tally.compiles, tally.collect_ns, tally.collections, retries, tally.peak_bytes),
            *(on_core_ns, queued_ns, tally.nodes, tally.edges, tally.worker, flags),
        )
        tally.clear()
        tally.began_ns = now
        tally.number += 1
        if self._tally_clock is not None:
            self._end_on_gpu(self._tally_clock, history, seen)
        else:
            self._end_on_host(history, seen, is_due)
        if is_tracing:
            self._trace(tracer.step)
        elif self._slow or self._reason:
            self._begin_trace()
        elif self._request is not None:  # the training's own profiler has taken the place of ours
            self._answer(why=BUSY)
        if tracer.is_tracing or tracer.is_noticed or self._slow or self._reason:
            tally.is_asked = True
        return True

    def _end_on_gpu(self, clock: TallyClock, history: History, seen: Sequence[int]) -> None:
        """How long the step took is written when the GPU has passed it."""
        tally = self._sources.tally
        entry = (*seen[:2], UNKNOWN, *seen[2:-1], tally.usual_ns, tally.limit_ns, seen[-1], 0)
        history.record.steps.append(entry)
        while tally.waiting >= EVENTS:
            tally.pop()
        if clock.end(seen[0]):
            self._resolve(history)
        if tally.left <= 0:
            self._judge(history)

    def _end_on_host(self, history: History, seen: Sequence[int], is_due: bool) -> None:
        tally, host_ns = self._sources.tally, seen[2]
        ended = self._ended
        for step in self._clock.end(seen, host_ns):
            ended.append(step)
            is_due = is_due or step[1] > history.limit_ns
        # The tally writes no step before those that it left to us are written.
        if is_due or len(ended) >= STEPS_TOGETHER or (self._tally_writes and tally.limit_ns != UNKNOWN):
            self._judge(history)

    def attend(self) -> None:
        """The tally has noted the last steps; now it is time to take them in, or to look."""
        assert self._history is not None
        tally = self._sources.tally
        if (now := perf_counter_ns()) > tally.due_ns:
            self._look(now)
        if self._tally_clock is not None:
            self._resolve(self._history)
        if tally.left <= 0:
            self._judge(self._history)
        if self._slow or self._reason:
            tally.is_asked = True

    def marks_begin(self) -> None:
        """From now on, only marks end steps: the record says so, also if it says that an optimizer's steps do."""
        if self._history is not None:
            self._history.record.amend(step=_MARK)

    def ask(self, reason: str) -> None:
        """Somebody asks for a trace."""
        self._reason = reason
        self._sources.tally.is_asked = True

    def summary(self) -> dict[str, float]:
        """See Watch.summary."""
        if self._history is None:
            return {}
        self._judge(self._history)
        return self._history.summary()

    def close(self) -> None:
        """A trace that is being taken is written, if it has a whole step, and the record ends."""
        self._trace(self._tracer.end)
        if self._history is not None:
            self._judge(self._history)
            self._history.end_minute()
            self._sources.tally.release()
            self._history.record.close()
        self._thread_clock.close()

    def withdraw(self) -> None:
        """Nobody can ask for a trace any more, and no step is noted."""
        self._sources.tally.release()
        desk, self._desk = self._desk, None
        if desk is not None:
            desk.close()

    def _start(self, optimizer: object) -> None:
        number = process.device()
        what = _MARK if optimizer is None else f"a step of {type(optimizer).__name__}"
        self._clock: Clock[Sequence[int]] = HostClock() if number is None else GpuClock.of(number)
        self._memory = Memory(number)
        facts = process.facts(self._step or what, self._clock.name, number, self._loader)
        tally = self._sources.tally
        # The first step, which ends now, is part of what is watched.
        named = facts = msgspec.structs.replace(facts, began_ns=tally.unix_ns + tally.began_ns)
        while (path := self._folder / f"{named.stem}.watch").exists():  # one of this process that began in this second
            named = msgspec.structs.replace(named, began_ns=named.began_ns + _SECOND_NS)
        self._history, self.path = History(Record.create(path, facts)), path
        if number is not None and (clock := TallyClock(tally, number)).is_used:
            self._tally_clock = clock
        if number is None or self._tally_clock is not None:
            self._tally_writes = tally.write_to(*self._history.record.steps.place)
        began = registry.began(facts.process)
        with suppress(OSError, TracekitError):  # nobody can ask for a trace then
            entry = Entry(facts.process, began or 0, os.path.abspath(self._folder), facts.script)
            self._desk = Desk.open(entry)

    def _judge(self, history: History) -> None:
        """Add the steps that ended to the history."""
        tally = self._sources.tally
        if self._tally_writes:
            self._catch_up(history, history.record.steps.count - tally.waiting)
        for ended, step_ns in self._ended:
            if reason := history.add(ended, step_ns, self._may_trace):
                self._slow, self._slow_number = reason, ended[0]
        self._ended.clear()
        self._sources.reconsider(history.usual_ns)
        if self._tally_writes:
            self._set_limits(history)

    def _resolve(self, history: History) -> None:
        """Judge the steps that the GPU has passed since, of those that the tally leaves to us."""
        tally = self._sources.tally
        while (number := tally.resolve()) != UNKNOWN:
            self._catch_up(history, number)
            if reason := history.judge(number, tally.resolved_ns, self._may_trace):
                self._slow, self._slow_number = reason, number
            tally.pop()
            self._set_limits(history)

    def _catch_up(self, history: History, end: int) -> None:
        reason, after = history.catch_up(end, self._may_trace)
        if reason:
            self._slow, self._slow_number = reason, after

    def _set_limits(self, history: History) -> None:
        tally = self._sources.tally
        tally.usual_ns, tally.limit_ns = history.quiet[:2]
        tally.left = STEPS_TOGETHER
        history.record.steps.make_ready(STEPS_TOGETHER)

    def _may_trace(self) -> bool:
        return not self._slow and self._tracer.may_trace()

    def _look(self, now: int) -> int:
        """Do what need not be done at each step; how often the allocator has freed its cache since the last look."""
        tally = self._sources.tally
        tally.due_ns = now + _LOOK_NS * (_RARER_LOOKS if self._tally_writes else 1)
        tally.unix_ns = time_ns() - perf_counter_ns()  # since `now`, the record may have been made
        if self._history is not None and now > self._minute_ns:
            self._minute_ns = now + _MINUTE_NS
            self._judge(self._history)
            self._history.end_minute()
        self._sources.listen_to_compiler()
        is_free = self._request is None and not self._tracer.is_tracing  # a trace that began earlier is no answer
        if self._desk is not None and is_free and (request := self._desk.requested()) is not None:
            self._request, self._reason = request, slug(request.reason)
        assert self._memory is not None
        tally.peak_bytes, retries = self._memory.look()
        return retries

    def _profiler_noticed(self) -> None:
        self._sources.tally.is_asked = self._is_profiled = True

    def _begin_trace(self) -> None:
        """Trace the next steps, because the last ones were slow, or because somebody asked for it."""
        number = self._sources.tally.number
        reason, is_asked = self._reason or self._slow, bool(self._reason)
        after = self._slow_number if self._slow else number - 1
        self._reason = self._slow = ""
        if self._tracer.is_busy:
            self._say(f"no trace was taken ({reason}): {BUSY}")
            self._answer(why=BUSY)
            return
        assert self.path is not None
        path = self.path.with_name(f"{self.path.stem}-step{after}-{reason}.pt.trace.json.gz")
        self._trace(lambda: self._tracer.begin(path, number, counts=not is_asked))

    def _trace(self, act: Callable[[], Path | None]) -> None:
        """Let the tracer do something, whatever comes of it; the time that it takes belongs to no step."""
        try:
            written = act()
        except Exception as error:
            with suppress(Exception):
                self._tracer.abandon()
            why = why_of(error) if isinstance(error, OSError) else f"{type(error).__name__}: {error}"
            self._say(f"a trace could not be taken in {self._folder}: {why}")
            self._answer(why=why)
        else:
            if written is not None:
                _log.info("wrote %s", written)
                self._answer(trace=str(written.absolute()))
        self._restart()

    def _restart(self) -> None:
        self._thread_clock.passed(host_ns=_MINUTE_NS)
        if self._history is not None:
            (self._tally_clock or self._clock).restart()
        self._sources.tally.clear()
        self._sources.tally.began_ns = perf_counter_ns()
        self._is_profiled = False  # ours began between two steps

    def _answer(self, trace: str = "", why: str = "") -> None:
        request, self._request = self._request, None
        if request is not None and self._desk is not None:
            with suppress(OSError):  # who asked waits until it gives up
                self._desk.answer(Answer(request.token, trace, why))

    def _say(self, sentence: str) -> None:
        if sentence not in self._told:
            self._told.add(sentence)
            _log.warning("%s", sentence)


def slug(reason: str) -> str:
    """The reason as part of a file's name."""
    return _NOT_IN_NAMES.sub("-", reason.lower()).strip("-")[:_REASON_LENGTH] or "snap"
