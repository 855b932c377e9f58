"""Why can this process not be stopped at the end of a step, while other variants take their turns?

What goes on meanwhile would make its next steps faster, or disturb the others, or notice that time has passed.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tracekit.units import many

_COMPILE_WORKER = b"torch/_inductor/compile_worker"  # idle where nothing compiles
_IDLE = ("concurrent", "multiprocessing", "torch", "tqdm")  # modules whose threads wait for work, or draw a bar
_LISTENS = "0A"  # the state of a socket, tcp(7)


def why_not_stopped() -> str:
    """The first reason found; empty if there is none."""
    return next(_reasons(), "")


def own_processes() -> str:
    """`2 processes`: how many this one started that still run, without those of the compiler; empty if there are none,
    or the system does not tell."""
    count = 0
    for listed in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError):
            for child in listed.read_text().split():
                count += _COMPILE_WORKER not in Path(f"/proc/{child}/cmdline").read_bytes()
    return many(count, "process", "processes") if count else ""


def _reasons() -> Iterator[str]:
    if processes := own_processes():
        yield f"it has {processes} of its own, which would not stop with it"
    for thread in threading.enumerate():
        if thread is not threading.main_thread() and _module(thread).partition(".")[0] not in _IDLE:
            yield f"it has a thread of its own ({thread.name}), which would not stop with it"
    if hasattr(signal, "getitimer") and any(signal.getitimer(timer)[0] for timer in _timers()):
        yield "a timer runs, which would not stop with it"
    if _is_a_server():
        yield "it listens to others, which would wait for it"


def _module(thread: threading.Thread) -> str:
    """Where the code of a thread is from."""
    target = getattr(thread, "_target", None)
    return str(getattr(target, "__module__", None) or type(thread).__module__)


def _timers() -> list[int]:
    return [signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF]


def _is_a_server() -> bool:
    """Whether a TCP socket of this process listens; only Linux tells."""
    sockets = set()
    for file in Path("/proc/self/fd").glob("*"):
        with suppress(OSError):
            sockets.add(str(file.readlink()))
    for table in ("tcp", "tcp6"):
        with suppress(OSError):
            rows = [line.split() for line in Path("/proc/self/net", table).read_text().splitlines()[1:]]
            if any(row[3] == _LISTENS and f"socket:[{row[9]}]" in sockets for row in rows):
                return True
    return False
