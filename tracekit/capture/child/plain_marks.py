"""Which line of the user's runs: what `native/marks.c` does, in Python, where that was not built.

A code object is known by its address: Dynamo makes some with constants that have no hash.
"""

import inspect
import struct
import sys
import threading
import time
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

from msgspec import Struct

_WHOLE = 0  # the line that stands for all of a code object
_WAITS = inspect.CO_COROUTINE | inspect.CO_ITERABLE_COROUTINE | inspect.CO_ASYNC_GENERATOR
_MARK = struct.Struct("qiii4x")


class _Place(Struct):
    """A line, or a code object as a whole."""

    code: CodeType
    line: int
    number: int
    last: int = -1  # of a code object: the place at which it yielded
    step: int = -1  # in which its arrivals were counted
    since_ns: int = 0
    arrivals: int = 0
    off_step: int = -1  # in which it was switched off
    hot_lines_step: int = -1  # of a code object: in which lines of it were switched off


class PlainMarks:
    """Marks, and the stack of the user's frames on each thread. `claims` says whose code an object is; `disable` is
    what the interpreter is told if a place is to be reported no more. A line that arrives more than `most_arrivals`
    times in a step, each after less than `busy_ns`, is in a hot loop."""

    def __init__(
        self,
        claims: Callable[[CodeType], bool],
        disable: object,
        most_arrivals: int,
        busy_ns: int,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self._claims, self._disable, self._clock = claims, disable, clock
        self._most_arrivals, self._busy_ns = most_arrivals, busy_ns
        self._step = 0
        self._places: dict[tuple[int, int], _Place] = {}
        self._owners: dict[int, tuple[CodeType, bool]] = {}  # the code, and whether it is the user's
        self._stacks: dict[int, list[tuple[CodeType, int]]] = {}  # a frame's code, and its place
        self._threads: list[int] = []
        self._marks: list[tuple[int, int, int, int]] = []

    def started(self, code: CodeType, *_: object) -> object:
        """A frame begins, or goes on where it yielded."""
        return self._reported(self._enter(code, -1) if self._mine(code) else True)

    resumed = started

    def line(self, code: CodeType, number: int) -> object:
        """A frame reaches a line."""
        return self._reported(self._reach(code, number))

    def left(self, code: CodeType, *_: object) -> object:
        """A frame ends."""
        return self._reported(self._leave(code, yields=False))

    def yielded(self, code: CodeType, *_: object) -> object:
        """A frame yields."""
        return self._reported(self._leave(code, yields=True))

    def runs(self, code: CodeType, line: int) -> None:
        """A frame of this thread runs already; the outermost comes first."""
        self._enter(code, self._place(code, line).number)

    def next_step(self) -> list[CodeType]:
        """A step begins: the codes of which something was switched off in the last one."""
        codes = [
            place.code
            for place in self._places.values()
            if place.line == _WHOLE and self._step in (place.off_step, place.hot_lines_step)
        ]
        self._step += 1
        return codes

    def taken(self) -> tuple[bytes, list[tuple[CodeType, int]], list[int]]:
        """All marks, packed, the places and the threads to which they refer by number."""
        places = [(place.code, place.line) for place in self._places.values()]
        return b"".join(_MARK.pack(*mark) for mark in self._marks), places, self._threads

    def trace(self, is_on: bool, signal: int) -> None:
        """Trace this thread, without pauses."""
        sys.settrace(self._traced if is_on else None)
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if self._mine(frame.f_code):
                frame.f_trace = self._traced if is_on else None
            frame = frame.f_back

    def look(self, *_: object) -> None:
        """Nothing: tracing never pauses."""

    def _traced(self, frame: FrameType, event: str, value: object) -> Any:
        code = frame.f_code
        if not self._mine(code):
            return None
        if event == "call":
            self._enter(code, self._place(code, frame.f_lineno).number)
        elif event == "line":
            self._reach(code, frame.f_lineno)
        elif event == "return":
            self._leave(code, yields=value is not None and bool(code.co_flags & _WAITS))
        return self._traced

    def _reported(self, is_over: bool) -> object:
        return self._disable if is_over else None

    def _mine(self, code: CodeType) -> bool:
        if id(code) not in self._owners:
            self._owners[id(code)] = code, self._claims(code)
        return self._owners[id(code)][1]

    def _place(self, code: CodeType, line: int) -> _Place:
        key = id(code), line
        if key not in self._places:
            self._places[key] = _Place(code, line, len(self._places))
        return self._places[key]

    def _stack(self) -> list[tuple[CodeType, int]]:
        thread = threading.get_native_id()
        if thread not in self._stacks:
            self._stacks[thread] = []
            self._threads.append(thread)
        return self._stacks[thread]

    def _mark(self, ns: int, is_off: bool) -> None:
        thread = threading.get_native_id()
        stack = self._stacks[thread]
        self._marks.append((ns, stack[-1][1] if stack else -1, self._threads.index(thread), int(is_off)))

    def _is_hot(self, place: _Place, ns: int) -> bool:
        if place.step != self._step:
            place.step, place.since_ns, place.arrivals = self._step, ns, 0
        place.arrivals += 1
        if place.arrivals <= self._most_arrivals:
            return False
        if ns - place.since_ns >= place.arrivals * self._busy_ns:
            place.since_ns, place.arrivals = ns, 0
            return False
        place.off_step = self._step
        return True

    def _enter(self, code: CodeType, number: int) -> bool:
        stack, whole = self._stack(), self._place(code, _WHOLE)
        at = _find(stack, code) if code.co_flags & _WAITS and whole.last >= 0 else -1
        if at >= 0:  # a coroutine that stayed while it waited
            del stack[at]
        was_off, loops = whole.off_step == self._step, self._step in (whole.off_step, whole.hot_lines_step)
        if number < 0:
            number = whole.number if loops else whole.last
        stack.append((code, number))
        if was_off:
            return True
        ns = self._clock()
        is_hot = self._is_hot(whole, ns)
        if number >= 0 or is_hot:
            self._mark(ns, is_hot or loops)
        return is_hot

    def _reach(self, code: CodeType, line: int) -> bool:
        stack, place = self._stack(), self._place(code, line)
        at = _find(stack, code)
        del stack[at if at >= 0 else len(stack) :]  # what an exception has left is over
        stack.append((code, place.number))
        if place.off_step == self._step:
            return True
        ns = self._clock()
        is_hot = self._is_hot(place, ns)
        if is_hot:
            self._place(code, _WHOLE).hot_lines_step = self._step
        self._mark(ns, is_hot)
        return is_hot

    def _leave(self, code: CodeType, *, yields: bool) -> bool:
        stack, whole = self._stack(), self._place(code, _WHOLE)
        at = _find(stack, code)
        if at < 0:
            return False
        whole.last = stack[at][1] if yields else -1
        if yields and code.co_flags & _WAITS:
            return False
        del stack[at:]
        if whole.off_step == self._step:
            return True
        self._mark(self._clock(), is_off=False)
        return False


def _find(stack: list[tuple[CodeType, int]], code: CodeType) -> int:
    return next((at for at in range(len(stack) - 1, -1, -1) if stack[at][0] is code), -1)
