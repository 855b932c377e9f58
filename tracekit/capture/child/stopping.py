"""Why can this process not be stopped at the end of a step? Because something of its own would go on meanwhile."""

import signal
import threading
from contextlib import suppress
from pathlib import Path

_IDLE_MODULES = ("concurrent", "multiprocessing", "torch", "tqdm")  # modules whose threads wait for work, or draw a bar
# What PyTorch calls the thread in which autograd runs a GPU's backward, Engine::thread_init: idle between steps. Python
# knows it as a dummy once something in it, such as the replay of CUDA graphs, asks for the current thread.
_AUTOGRAD = "pt_autograd_"
_LISTENS = "0A"  # the state of a socket, tcp(7)
_COMPILE_WORKER = b"torch/_inductor/compile_worker"  # idle where nothing compiles


def why_not_stopped() -> str:
    """The first reason found; empty if there is none."""
    if processes := own_processes():
        return f"it has {processes} of its own, which would not stop with it"
    for thread in threading.enumerate():
        target = getattr(thread, "_target", None)
        module = str(getattr(target, "__module__", None) or type(thread).__module__)  # where its code is from
        if thread is threading.main_thread() or module.partition(".")[0] in _IDLE_MODULES:
            continue
        name_of_system = ""
        with suppress(OSError):
            name_of_system = Path(f"/proc/self/task/{thread.native_id}/comm").read_text()
        if not name_of_system.startswith(_AUTOGRAD):
            return f"it has a thread of its own ({thread.name}), which would not stop with it"
    timers = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF) if hasattr(signal, "getitimer") else ()
    if any(signal.getitimer(timer)[0] for timer in timers):
        return "a timer runs, which would not stop with it"
    return "it listens to others, which would wait for it" if _is_a_server() else ""


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


def own_processes() -> str:
    """`2 processes`: how many this one started that still run, without those of the compiler; empty if there are none,
    or the system does not tell."""
    count = 0
    for listed in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError):
            for child in listed.read_text().split():
                count += _COMPILE_WORKER not in Path(f"/proc/{child}/cmdline").read_bytes()
    return f"{count} process{'es' * (count > 1)}" if count else ""
