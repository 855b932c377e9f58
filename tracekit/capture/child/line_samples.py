"""On which line is the user's code where it makes no call? Looked up now and then while stacks are recorded.

The profiler knows a frame's line only when the frame calls something. A thread beside the training reads the line in
between. Nothing is traced and no code is changed, so Dynamo cannot notice, and what it costs depends on the time that
passes and not on what happens in it.
"""

import _thread
import dis
import sys
import threading
import time
from collections import Counter
from types import CodeType
from typing import NamedTuple

from tracekit.code_owner import USER, CodeOwners
from tracekit.lines_file import Place

_EVERY_S = 0.0005
_USUAL = 4000  # samples: a recording of more than this many intervals is sampled ever more rarely
_SWITCH_S = 0.0002  # after which Python lets the sampler run; usually 5 ms


class Sample(NamedTuple):
    """A moment, unix ns, at which a frame of the user's was innermost, and the instruction that it was at."""

    t_ns: int
    code: CodeType
    instruction: int


class LineSampler:
    """While active, samples the line of the thread that made it."""

    def __init__(self) -> None:
        self.samples: list[Sample] = []
        self._thread = threading.get_ident()
        self._stop = _thread.allocate_lock()
        self._stopped = _thread.allocate_lock()
        self._switch_s = sys.getswitchinterval()
        self._owner_of = CodeOwners().of

    def start(self) -> None:
        """Begin. The thread is none of `threading`'s, so that the profiler does not record it."""
        self._stop.acquire()
        self._stopped.acquire()
        sys.setswitchinterval(_SWITCH_S)
        _thread.start_new_thread(self._run, ())

    def stop(self) -> None:
        """End; nothing happens if it did not begin, or has ended."""
        if self._stop.locked():
            self._stop.release()
            self._stopped.acquire()
            self._stopped.release()
            sys.setswitchinterval(self._switch_s)

    def _run(self) -> None:
        began = time.monotonic()
        while not self._stop.acquire(timeout=max(_EVERY_S, (time.monotonic() - began) / _USUAL)):
            frame = sys._current_frames().get(self._thread)
            if frame is not None and self._owner_of(frame.f_code.co_filename) == USER:
                self.samples.append(Sample(time.time_ns(), frame.f_code, frame.f_lasti))
            frame = None  # otherwise, it would keep the user's objects alive until the next sample
        self._stop.release()
        self._stopped.release()


def place_of(code: CodeType, instruction: int, caller: int) -> Place | None:
    """The line of an instruction; for a jump back, all lines of the loop, with their numbers of instructions.

    Python lets other threads run only at certain instructions: in a loop, where it jumps back. So a sample there stands
    for a round of the loop.
    """
    executed = [operation for operation in dis.get_instructions(code) if operation.offset <= instruction]
    if not executed:
        return None
    begins = executed[-1].argval if executed[-1].opname.startswith("JUMP_BACKWARD") else executed[-1].offset
    lines = Counter(
        operation.positions.lineno
        for operation in executed
        if operation.offset >= begins and operation.positions is not None and operation.positions.lineno is not None
    )
    return Place(caller, [*lines], [*lines.values()]) if lines else None
