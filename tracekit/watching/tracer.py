"""The profiler runs for a few whole steps, and writes a trace of them: whole, or not at all.

Never while the training's own profiler is in use, because two at once crash the process; if that begins meanwhile, ours
gives way.
"""

import gzip
import logging
import os
import weakref
from collections import deque
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Any

import torch

from tracekit.base.atomic import replacing
from tracekit.capture import lost_kernels
from tracekit.capture.child.replaced import Replacements, are_idle
from tracekit.capture.device import activities

HOUR_S = 3600.0
BUSY = "the training's own profiler is in use"
_LEVEL = 1  # of compression: a trace is written between two steps
_TAIL_BYTES = 64

log = logging.getLogger("tracekit")


class Tracer:
    """Takes traces, one at a time. A step of warm-up comes first, in which the profiler starts."""

    def __init__(self, steps: int, per_hour: int, stacks: bool) -> None:
        self._steps, self._per_hour, self._stacks = steps, per_hour, stacks
        self._taken: deque[float] = deque()  # when slow steps made it trace
        self._profiler: Any = None
        self._steps_left = 0
        self._path = Path()
        self.noticed: Callable[[], None] = lambda: None  # called when a profiler begins, and when the training's ends
        self._others: set[weakref.ref[Any]] = set()  # the training's own profilers
        self._replaced = Replacements()

    def __enter__(self) -> "Tracer":
        module: Any = torch.autograd.profiler
        profile, start = module.profile, module._run_on_profiler_start
        prepare, leave = profile._prepare_trace, profile.__exit__

        def preparing(profiler: Any) -> None:
            if self._profiler is None or profiler is not self._profiler.profiler:
                self.abandon()
                self._others.add(weakref.ref(profiler, self._others.discard))
                self.noticed()
            prepare(profiler)

        def leaving(profiler: Any, *error: Any) -> Any:
            if (left := weakref.ref(profiler)) in self._others:
                self._others.discard(left)
                self.noticed()
            return leave(profiler, *error)

        def starting() -> None:  # of any kind, also one that only annotates
            start()
            self.noticed()

        self._replaced.put(profile, "_prepare_trace", preparing)
        self._replaced.put(profile, "__exit__", leaving)
        self._replaced.put(module, "_run_on_profiler_start", starting)
        return self

    def __exit__(self, *_: object) -> None:
        self.abandon()
        self._replaced.undo()

    def forget(self) -> None:
        """Undo everything in a fork, where the profiler does not run."""
        self._profiler = None
        self._replaced.undo()

    @property
    def is_tracing(self) -> bool:
        """Whether our profiler is in use."""
        return self._profiler is not None

    @property
    def is_busy(self) -> bool:
        """Whether the training's own profiler is in use."""
        return self.is_noticed or are_idle()

    @property
    def is_noticed(self) -> bool:
        """Whether a profiler is in use, also one that is about to run."""
        return bool(self._others) or bool(torch.autograd._profiler_enabled())

    def may_trace(self) -> bool:
        """Whether a slow step may make it trace now."""
        while self._taken and monotonic() - self._taken[0] > HOUR_S:
            self._taken.popleft()
        return len(self._taken) < self._per_hour and not self.is_tracing and not self.is_busy

    def begin(self, path: Path, number: int, counts: bool) -> None:
        """Trace the steps from this number on; a trace that `counts` is one of the hour's."""
        if counts:
            self._taken.append(monotonic())
        self._path = path
        self._steps_left = self._steps + 1
        schedule = torch.profiler.schedule(wait=0, warmup=1, active=self._steps, repeat=1)
        profiler = torch.profiler.profile(
            activities=activities(torch.cuda.is_available()),
            schedule=lambda step: schedule(max(0, step - number)),
            with_stack=self._stacks,
        )
        profiler.step_num = number  # the N of ProfilerStep#N counts the training's steps
        profiler.current_action = profiler.schedule(number)
        self._profiler = profiler
        with lost_kernels.silent():  # what it prints would be among what the training says
            profiler.start()

    def step(self) -> Path | None:
        """A step ends; the path of the trace if it was the last one, and is written. Raises OSError."""
        self._steps_left -= 1
        self._profiler.step()
        return None if self._steps_left else self._finish()

    def end(self) -> Path | None:
        """Stop now; the path of the trace, if it has a whole step. Raises OSError."""
        if self._profiler is None or self._steps_left >= self._steps:
            self.abandon()
            return None
        return self._finish()

    def abandon(self) -> None:
        """Stop now, and write nothing."""
        profiler, self._profiler = self._profiler, None
        if profiler is not None:
            profiler.stop()

    def _finish(self) -> Path:
        profiler, path, is_whole = self._profiler, self._path, not self._steps_left
        # The range of a step that did not end is no step.
        name, replacement = f'"ProfilerStep#{profiler.step_num}"'.encode(), b'"after the last step"'
        self.abandon()
        with replacing(path) as part:
            raw = part.with_suffix(".json")
            try:
                profiler.export_chrome_trace(str(raw))
                _check(raw)
                with open(raw, "rb") as source, gzip.open(part, "wb", compresslevel=_LEVEL) as target:
                    target.writelines(source if is_whole else (line.replace(name, replacement) for line in source))
            finally:
                raw.unlink(missing_ok=True)
        return path


def _check(raw: Path) -> None:
    """Raises OSError if the profiler could not write all of it, of which it tells nobody."""
    with open(raw, "rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
        if not file.read().rstrip().endswith(b"}"):
            raise OSError("the profiler could not write all of it: is the disk full?")
