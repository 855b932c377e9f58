"""`tracekit.watch()`: what runs in a training's loop, at each end of a step."""

import atexit
import logging
import os
import signal
import time
import weakref
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, TypeVar

from tracekit.base.atomic import reason as why_of
from tracekit.capture.child.loaders import RecordedLoaders
from tracekit.capture.child.replaced import leave_alone, out_of_dynamos_sight
from tracekit.capture.child.script import is_captured
from tracekit.capture.child.step_ends import StepEnds
from tracekit.vocabulary import step_marks
from tracekit.watching import process
from tracekit.watching.observation import Observation, slug
from tracekit.watching.sources import Batches, Sources
from tracekit.watching.tally import Tally
from tracekit.watching.tracer import Tracer

_Item = TypeVar("_Item")
_log = logging.getLogger("tracekit")
_watches: list["Watch"] = []  # of this process: one, or none


def watch(
    folder: str | Path = "watch",
    *,
    step: str = "",
    ranks: str = "0",
    trace_steps: int = 5,
    traces_per_hour: int = 2,
    stacks: bool = False,
    on_signal: int | None = None,
) -> "Watch":
    """Watch this training: time each of its steps, and write what happened in it to a record in `folder`.

    A step ends where the first optimizer to step does so; after the first call of `tracekit.step()`, or of the watch's
    own `step()`, only where that is called. Where `step` says in words what a step is, optimizers end none from the
    beginning. A step that takes unusually long makes the profiler trace the next `trace_steps` whole steps, at most
    `traces_per_hour` times an hour (0: never), with the lines of your code if `stacks`; so does the signal `on_signal`.

    Only rank 0 is watched, or each if `ranks` is "all". Does nothing while TRACEKIT_OFF=1 is set, in a capture, and if
    this process is watched already. What goes wrong is logged once, by the logger "tracekit"; training goes on.
    Raises ValueError if an argument means nothing.
    """
    if ranks not in ("0", "all"):
        raise ValueError(f'ranks is {ranks!r}: it must be "0" or "all"')
    if trace_steps < 1 or traces_per_hour < 0:
        raise ValueError("trace_steps must be at least 1, and traces_per_hour at least 0")
    started = Watch(Path(folder), step, ranks == "all", Tracer(trace_steps, traces_per_hour, stacks))
    if not process.is_switched_off() and not is_captured():
        started._begin(on_signal)
    return started


class Watch:
    """A training that is watched until `close()`, the end of its `with`, or that of the process."""

    def __init__(self, folder: Path, step: str, all_ranks: bool, tracer: Tracer) -> None:
        self.folder = folder
        self._step, self._all_ranks = step, all_ranks
        self._sources, self._tracer = Sources(Tally()), tracer
        self._observation: Observation | None = None  # while it watches
        self._over: Path | None = None  # the record of a watch that is over
        self._undo = ExitStack()  # takes away all that was put into torch and Python
        self._sources.tally.has_marks = bool(step)

    def __enter__(self) -> "Watch":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def path(self) -> Path | None:
        """The record, also of a watch that is over; None until the first step has ended, and where nothing is
        watched."""
        return self._observation.path if self._observation is not None else self._over

    def step(self) -> None:
        """End a step; what follows belongs to the next one."""
        tally = self._sources.tally
        if not tally.has_marks:
            tally.has_marks = True
            self._marks_begin()
        if not tally.end(None):
            self._ended(None)

    def apart(self) -> None:
        """Mark the current step: something that is no step happens in it, such as an evaluation."""
        self._sources.tally.apart = True

    def snap(self, reason: str = "snap") -> None:
        """Trace the steps that follow the current one. The reason becomes part of the trace's name."""
        if self._observation is not None:
            self._observation.ask(slug(reason))

    def batches(self, loader: Iterable[_Item]) -> Iterable[_Item]:
        """The loader; how long the loop waits for each of its batches is noted. DataLoaders need no such wrapper."""
        return loader if self._observation is None else Batches(loader, self._sources)

    def summary(self) -> dict[str, float]:
        """Figures of the steps since the last summary, of 9,999 at most, without those that were traced or set apart;
        empty if there were none. Shares are of the loop's time.

        `tracekit/steps`, `tracekit/step_ms` (the median), `tracekit/longest_step_ms`, `tracekit/slow_steps`,
        `tracekit/share/waiting` (for batches), `tracekit/share/compiling`, `tracekit/share/collecting` (Python's
        garbage) and `tracekit/peak_mb` (the most so far, in 10^6 bytes: allocated on the GPU, or resident on the host).
        """
        return {} if self._observation is None else self._observation.summary()

    def close(self) -> None:
        """Stop watching. A trace that is being taken is written, if it has a whole step."""
        if self._observation is not None:
            try:
                self._observation.close()
            except Exception:
                self._fail()
            self._leave()

    def _begin(self, on_signal: int | None) -> None:
        if _watches:
            _log.warning("this process is watched already, into %s: a second watch does nothing", _watches[0].folder)
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._put_in(on_signal)
        except OSError as error:
            self._leave()
            _log.warning("this training is not watched: %s cannot be written (%s)", self.folder, why_of(error))
        except Exception:
            self._fail()

    def _put_in(self, on_signal: int | None) -> None:
        undo, folder = self._undo, self.folder.absolute()  # the training may change its own folder
        _watches.append(self)
        undo.callback(_watches.remove, self)
        undo.enter_context(self._sources)
        loader = f"loader-{os.getpid()}-{time.time_ns()}"
        number, _ = process.rank()
        if self._all_ranks or not number:
            undo.enter_context(RecordedLoaders(folder / loader, number))
        undo.enter_context(self._tracer)
        if not self._sources.tally.has_marks:
            self._ends = undo.enter_context(StepEnds(self._optimizer_stepped, noted=self._sources.tally.end))
        step_marks.listen(self.step)
        undo.callback(step_marks.stop_listening, self.step)
        if on_signal is not None:
            self._listen_to(on_signal)
        atexit.register(self.close)
        undo.callback(atexit.unregister, self.close)
        self._sources.tally.attend = out_of_dynamos_sight(self._attend)
        self._observation = Observation(folder, loader, self._step, self._sources, self._tracer)

    def _listen_to(self, number: int) -> None:
        def asked(*_: object) -> None:
            if self._observation is not None:
                self._observation.ask("signal")

        leave_alone(asked)
        try:
            before = signal.signal(number, asked)
        except OSError:
            _log.warning("signal %s takes no trace: it cannot be caught", number)
        except ValueError:
            _log.warning("signal %s takes no trace: only the main thread can listen to signals", number)
        else:
            self._undo.callback(_restore, number, asked, before)

    def _optimizer_stepped(self, _: Any) -> None:
        tally = self._sources.tally
        if not tally.has_marks:
            optimizer = self._ends.first
            tally.optimizer = weakref.ref(optimizer)
            self._ended(optimizer)

    def _marks_begin(self) -> None:
        if self._observation is not None:
            try:
                self._observation.marks_begin()
            except Exception:
                self._fail()

    def _attend(self) -> None:
        if self._observation is not None:
            try:
                self._observation.attend()
            except Exception:
                self._fail()

    def _ended(self, optimizer: Any) -> None:
        if self._observation is not None:
            try:
                if not self._observation.end(optimizer, self._all_ranks):
                    self.close()
            except OSError as error:
                self._leave()
                _log.warning("this training is not watched: %s cannot be written (%s)", self.folder, why_of(error))
            except Exception:
                self._fail()

    def _fail(self) -> None:
        """Nothing that goes wrong here may end a training."""
        _log.warning("tracekit failed, and stops watching this training", exc_info=True)
        self._leave()

    def _leave(self) -> None:
        if self._observation is not None:
            self._over = self._observation.path
            self._observation.withdraw()
        self._observation = None
        with suppress(Exception):
            self._undo.close()

    def _left_behind(self) -> None:
        """This is a fork: its parent is watched."""
        self._sources.tally.release()
        self._observation = None
        self._tracer.forget()
        self._undo.close()


def _restore(number: int, ours: Any, before: Any) -> None:
    if signal.getsignal(number) is ours:  # otherwise, the training has listened to it since
        signal.signal(number, before)


def _forked() -> None:
    for left in [*_watches]:
        with suppress(Exception):
            left._left_behind()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
