"""Which line of the user's runs: the interpreter says whenever that changes, while the training goes on.

From Python 3.12 on, `sys.monitoring` reports the lines of the user's own code alone, also of frames that run already,
at less than 0.2 µs a line: that can be asked while steps are recorded whose times are quoted. Before, a function for
tracing is called for all code, so only the recording with stacks, which is slow anyway, has marks.

A line that arrives most often and is quickly over is a hot loop: for the rest of the step it is reported no more.
"""

import signal
import struct
import sys
import threading
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, NamedTuple

from tracekit.capture.child.hot_loops import MOST_ARRIVALS, Row, told
from tracekit.capture.child.plain_marks import PlainMarks
from tracekit.vocabulary.code_owner import USER, CodeOwners
from tracekit.vocabulary.lines_file import Mark

_monitoring: Any = getattr(sys, "monitoring", None)
IS_CHEAP = _monitoring is not None
_TOOLS = (4, 3)  # numbers that sys.monitoring gives to no kind of tool
_BUSY_NS = 10_000  # a line that takes less, again and again, is in a hot loop
_BELOW_LAST = 2  # real-time signals: the last ones are taken by nobody
_MARK = struct.Struct("qiii4x")


class Taken(NamedTuple):
    """Marks in order of time, and the places that they refer to: a code object of the user's, and a line in it."""

    marks: list[Mark]
    places: list[tuple[CodeType, int]]


NO_MARKS = Taken([], [])


class LineMarks:
    """Marks, between `start` and `stop`, on the thread that calls them and, from Python 3.12 on, on all others."""

    def __init__(self) -> None:
        self._owner_of = CodeOwners().of
        self._monitors: list[_Monitor | _Tracer] = []
        self._marks: Any = None

    def start(self) -> None:
        """Begin, with the frames that run already."""
        monitor = _Monitor.free(self._is_users) if IS_CHEAP else _Tracer(self._is_users)
        if monitor is None:  # other tools have taken all numbers
            return
        self._monitors.append(monitor)
        self._marks = monitor.marks
        frame: FrameType | None = sys._getframe(1)
        running = []
        while frame is not None:
            if self._is_users(frame.f_code):
                running.append((frame.f_code, frame.f_lineno))
            frame = frame.f_back
        for code, line in reversed(running):
            monitor.marks.runs(code, line)
        monitor.start([code for code, _ in running])

    def step(self) -> None:
        """A step begins: what was a hot loop in the last one is reported again."""
        for monitor in self._monitors:
            monitor.again(monitor.marks.next_step())

    def stop(self) -> None:
        """End; nothing happens if it did not begin, or has ended."""
        while self._monitors:
            self._monitors.pop().stop()

    def taken(self) -> Taken:
        """All marks so far."""
        if self._marks is None:
            return NO_MARKS
        packed, places, threads = self._marks.taken()
        rows = [Row(*row) for row in _MARK.iter_unpack(packed)]
        marks = []
        for number, thread in enumerate(threads):
            marks += told([row for row in rows if row.thread == number], places, thread)
        used = sorted({mark.place for mark in marks if mark.place >= 0})
        number_of = {place: number for number, place in enumerate(used)} | {-1: -1}
        marks = [mark._replace(place=number_of[mark.place]) for mark in sorted(marks)]
        return Taken(marks, [places[place] for place in used])

    def _is_users(self, code: CodeType) -> bool:
        return self._owner_of(code.co_filename) == USER


class _Monitor:
    """The interpreter reports lines by `sys.monitoring`."""

    def __init__(self, tool: int, is_users: Callable[[CodeType], bool]) -> None:
        self._tool, self._is_users = tool, is_users
        self._codes: dict[int, CodeType] = {}  # by address: some of Dynamo's have no hash
        events = _monitoring.events
        self._events = events.LINE | events.PY_START | events.PY_RESUME | events.PY_RETURN | events.PY_YIELD
        self.marks = _made(self._claims, _monitoring.DISABLE)
        self._callbacks = {
            events.PY_START: self.marks.started,
            events.PY_RESUME: self.marks.resumed,
            events.LINE: self.marks.line,
            events.PY_RETURN: self.marks.left,
            events.PY_YIELD: self.marks.yielded,
        }

    @staticmethod
    def free(is_users: Callable[[CodeType], bool]) -> "_Monitor | None":
        """One with a number that nobody has; None if there is none."""
        for tool in _TOOLS:
            if _monitoring.get_tool(tool) is None:
                _monitoring.use_tool_id(tool, "tracekit")
                return _Monitor(tool, is_users)
        return None

    def start(self, running: list[CodeType]) -> None:
        """Begin; any code that starts later is asked whose it is, once."""
        for event, callback in self._callbacks.items():
            _monitoring.register_callback(self._tool, event, callback)
        for code in running:
            self._claims(code)
        _monitoring.set_events(self._tool, _monitoring.events.PY_START | _monitoring.events.PY_RESUME)

    def again(self, codes: list[CodeType]) -> None:
        """Report lines again that were switched off; restarting all events would ask whose all of torch's code is."""
        for code in codes:
            _monitoring.set_local_events(self._tool, code, 0)
            _monitoring.set_local_events(self._tool, code, self._events)

    def stop(self) -> None:
        """End, and give the number back."""
        _monitoring.set_events(self._tool, 0)
        for code in self._codes.values():
            _monitoring.set_local_events(self._tool, code, 0)
        for event in self._callbacks:
            _monitoring.register_callback(self._tool, event, None)
        _monitoring.free_tool_id(self._tool)

    def _claims(self, code: CodeType) -> bool:
        mine = self._is_users(code)
        if mine and id(code) not in self._codes:
            self._codes[id(code)] = code
            _monitoring.set_local_events(self._tool, code, self._events)
        return mine


class _Tracer:
    """The interpreter calls a function for each line of all code."""

    def __init__(self, is_users: Callable[[CodeType], bool]) -> None:
        self.marks = _made(is_users, None)
        self._signal = 0

    def start(self, running: list[CodeType]) -> None:
        """Begin. Only the main thread handles signals, and only one that nobody else handles is taken."""
        number = getattr(signal, "SIGRTMAX", signal.SIGTERM) - _BELOW_LAST
        is_free = hasattr(signal, "SIGRTMAX") and signal.getsignal(number) is signal.SIG_DFL
        if is_free and threading.current_thread() is threading.main_thread():
            signal.signal(number, self.marks.look)
            signal.siginterrupt(number, False)
            self._signal = number
        self.marks.trace(True, self._signal)

    def again(self, codes: list[CodeType]) -> None:
        """Nothing was switched off."""

    def stop(self) -> None:
        """End."""
        self.marks.trace(False, 0)
        if self._signal:
            signal.signal(self._signal, signal.SIG_IGN)  # one may still be on its way
            signal.signal(self._signal, signal.SIG_DFL)


def _made(claims: Callable[[CodeType], bool], disable: object) -> Any:
    try:
        from tracekit.native._marks import Marks
    except ImportError:
        return PlainMarks(claims, disable, MOST_ARRIVALS, _BUSY_NS)
    return Marks(claims, disable, MOST_ARRIVALS, _BUSY_NS)
