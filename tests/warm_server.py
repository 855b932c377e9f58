"""Forks processes that run Python programs with torch already imported: see `tests/warm.py`."""

import atexit
import builtins
import contextlib
import ctypes
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import sys
import tempfile
import threading
import traceback
from importlib.machinery import SourceFileLoader
from types import ModuleType

# What every pass imports sooner or later.
_PRELOADED = (
    "torch",
    "torch._dynamo",
    "torch._dynamo.backends.debugging",
    "torch._dynamo.repro.after_dynamo",
    "torch._export.db.logging",
    "torch._inductor.compile_fx",
    "torch.export._trace",
    "torch.profiler.python_tracer",
    "torch.utils.data",
)
_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_PLAIN_PATH = sys.path[1:]


def serve(requests: socket.socket) -> None:
    """Serve until no process is left that could ask."""
    for name in _PRELOADED:
        importlib.import_module(name)
    assert threading.active_count() == 1, "threads do not survive a fork"
    gc.collect()
    gc.freeze()  # else each pass looks through all of torch whenever it collects garbage: a fifth of a second
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no process waits for these children
    while True:
        message, descriptors, _, _ = socket.recv_fds(requests, 1 << 20, 3)
        if not message:
            return
        if not os.fork():
            requests.close()
            _keep(json.loads(message), *descriptors)
        for each in descriptors:
            os.close(each)


def _keep(request: dict, stdout: int, stderr: int, status: int) -> None:
    """Start a process, report its id, wait for it, and report how it ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _die_with_parent()
    child = os.fork()
    if not child:
        os.close(status)
        _become(request, stdout, stderr)
    os.write(status, b"%20d" % child)  # as long as it is read, for the code may follow at once
    ends = select.poll()
    with open(os.pidfd_open(child)) as running:
        ends.register(running, select.POLLIN)
        ends.register(status, 0)  # an error is always told: who asked for this process is gone
        if status in dict(ends.poll()):
            os.kill(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with contextlib.suppress(BrokenPipeError):
        os.write(status, b"%d" % code)
    os._exit(0)


def _become(request: dict, stdout: int, stderr: int) -> None:
    """Behave like a new interpreter, until it ends."""
    _die_with_parent()
    os.setsid()
    os.dup2(stdout, 1)
    os.dup2(stderr, 2)
    os.close(stdout)
    os.close(stderr)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    tempfile.tempdir = None  # it was computed before TMPDIR had this value
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed()
    code = 0
    try:
        _run(request["arguments"])
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        if code and not isinstance(ended.code, int):
            print(ended.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
        code = 1
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code & 0xFF)


def _run(arguments: list[str]) -> None:
    """Run `python ARGUMENTS`: -c CODE, -m MODULE or a file, and what follows."""
    match arguments:
        case ["-c", code, *given]:
            sys.path[:] = ["", *_PLAIN_PATH]
            sys.argv = ["-c", *given]
            exec(compile(code, "<string>", "exec"), _main().__dict__)
        case ["-m", name, *given]:
            sys.path[:] = [os.getcwd(), *_PLAIN_PATH]
            sys.argv = [name, *given]
            runpy.run_module(name, run_name="__main__", alter_sys=True)
        case [file, *given]:
            sys.path[:] = [os.path.dirname(os.path.abspath(file)), *_PLAIN_PATH]
            sys.argv = [file, *given]
            loader = SourceFileLoader("__main__", file)
            exec(loader.get_code("__main__"), _main(__file__=file, __loader__=loader).__dict__)


def _main(**more: object) -> ModuleType:
    main = ModuleType("__main__")
    main.__dict__.update(__builtins__=builtins, **more)
    sys.modules["__main__"] = main
    return main


def _die_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
