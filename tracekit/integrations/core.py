"""A training loop of a framework under watch: what the callbacks of all frameworks do, whatever calls them.

A framework says when a step ends, and when something else than a step happens. The figures of the watch go to the
framework's own log; at the end of the training, the shares of a step's time join them, if a trace was taken.
"""

import logging
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

import tracekit
from tracekit.capture import messages
from tracekit.capture.child.script import is_captured
from tracekit.errors import TracekitError
from tracekit.integrations import results
from tracekit.watching.process import is_switched_off, rank

Figures = dict[str, float]  # what frameworks log, by name: "tracekit/step_ms"
_LOG = logging.getLogger("tracekit")
_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


class Part:
    """Something of ours in a training, which stops at its first exception."""

    name = "tracekit"  # as a sentence about it begins
    stopped = False

    def release(self) -> None:
        """Put everything of the framework's and torch's back as it was."""


_AnyPart = TypeVar("_AnyPart", bound=Part)


def harmless(
    method: Callable[Concatenate[_AnyPart, _Arguments], _Result],
) -> Callable[Concatenate[_AnyPart, _Arguments], _Result | None]:
    """The method, out of which no exception comes: the first of a part is logged, and then the part does nothing."""

    @wraps(method)
    def call(part: _AnyPart, /, *args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result | None:
        if part.stopped:
            return None
        try:
            return method(part, *args, **kwargs)
        except Exception as error:
            part.stopped = True
            ours = isinstance(error, TracekitError)  # a sentence that says it all
            what = str(error) if ours else f"{type(error).__name__}: {error}"
            with suppress(Exception):
                _LOG.warning("%s failed, and your program goes on without it. %s", part.name, what, exc_info=not ours)
            with suppress(Exception):
                part.release()
            return None

    return call


def is_off(ranks: str) -> bool:
    """Whether nothing is to be done in this process: it is switched off, is not the first of several ranks, or belongs
    to a capture, which observes everything itself."""
    return is_switched_off() or is_captured() or (ranks != "all" and rank()[0] > 0)


def tell(line: str) -> None:
    """Log where something is; on stderr where nobody has asked to see the log."""
    if _LOG.isEnabledFor(logging.INFO):
        _LOG.info("%s", line)
    else:
        messages.on_stderr(line)


class Watch(Protocol):
    """What a loop needs of `tracekit.watch`."""

    @property
    def path(self) -> Path | None:
        """The record, as long as it is written."""

    def step(self) -> None:
        """End a step."""

    def apart(self) -> None:
        """Mark the current step: something that is no step happens in it."""

    def summary(self) -> Figures:
        """The figures of the steps since the last summary."""

    def close(self) -> None:
        """End the watch."""


class Loop(Part):
    """A training loop that a framework drives, whose watch has these options. Only `release` raises exceptions."""

    name = "tracekit's callback"

    def __init__(self, folder: str | Path, options: dict[str, Any]) -> None:
        self.folder, self.options = Path(folder), options
        self.steps = 0
        self._watch: Watch | None = None
        self._log: Callable[[Figures, int], Any] | None = None  # it holds the framework's trainer, and so its model

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy watches nothing yet: frameworks send callbacks to processes that they spawn, and copy trainers."""
        return Loop, (self.folder, self.options)

    @harmless
    def begin(self, step: str, log: Callable[[Figures, int], Any]) -> None:
        """Watch the steps from now on, each of which is a `step`, in words, if that is not empty. `log` is given
        figures, and the number of the step that they were known at."""
        for interrupted in [*_under_way]:  # as in a notebook, where nothing has told that its training is over
            interrupted.release()
        if not is_off(self.options.get("ranks", "0")):
            results.forget_traces()
            self.steps, self._log = 0, log
            self._watch = tracekit.watch(self.folder, **{"step": step, **self.options})
            _under_way.append(self)

    @harmless
    def step(self, number: int, log_every: int = 0) -> None:
        """End the framework's step of that number; log figures after so many, if that is not 0."""
        if self._watch is not None:
            self._watch.step()
            self.steps += 1
            if log_every and self.steps % log_every == 0:
                self._give(self._watch.summary(), number)

    @harmless
    def apart(self) -> None:
        """Set the step that is under way apart: evaluation, a checkpoint, or the end of an epoch is a part of it."""
        if self._watch is not None:
            self._watch.apart()

    @harmless
    def log(self, number: int) -> None:
        """Log the figures of the steps since the last time, up to the one of that number."""
        if self._watch is not None:
            self._give(self._watch.summary(), number)

    @harmless
    def _summary(self) -> Figures:
        return self._watch.summary() if self._watch is not None else {}

    def summary(self) -> Figures:
        """The figures of the steps since the last time, for a loop that logs them itself; empty if there are none."""
        return self._summary() or {}

    @harmless
    def end(self, number: int) -> None:
        """End the watch and log its last figures, with the shares of a step's time if a trace was taken."""
        if self._watch is not None:
            figures, record, log = self._watch.summary(), self._watch.path, self._log
            self.release()
            figures = {**figures, **(self._shares(record) or {})}
            if figures and log is not None:
                log(figures, number)

    @harmless
    def _shares(self, record: Path | None) -> Figures:
        if rank()[0] > 0:  # frameworks log what rank 0 gives them
            return {}
        trace = results.latest_trace(record)
        return results.shares(trace) if trace is not None else {}

    @harmless
    def abandon(self) -> None:
        """End the watch without a word: the training has failed, or has been logged already."""
        self.release()

    def release(self) -> None:
        """End the watch, and hold nothing of the framework's any more: its model may fill the GPU."""
        watch, self._watch, self._log = self._watch, None, None
        if self in _under_way:
            _under_way.remove(self)
        if watch is not None:
            watch.close()

    def _give(self, figures: Figures, number: int) -> None:
        if figures and self._log is not None:
            self._log(figures, number)


_under_way: list[Loop] = []  # the loop that is watched: a process has one watch at most
