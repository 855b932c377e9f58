"""A process that is forked for pass after pass, so that each starts at once: it imports what all of them need.

Forks share where libraries lie in memory; what they allocate is scattered, as in separate processes. None need look
for garbage among all that its parent has imported: that takes a quarter of a second, and copies every page of memory
that it looks at.
"""

import ast
import ctypes
import gc
import importlib
import importlib.util
import os
import random
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from tracekit.base.units import many
from tracekit.capture.child import file_view
from tracekit.capture.device import was_touched
from tracekit.capture.file_view import VIEW
from tracekit.capture.job import BEGINNING, FORK, MESSAGE_BYTES, TURNS, WAITING, Beginning, Job, message

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_SAFE_THREADS = ("jemalloc_bg_thd",)  # jemalloc ends it before a fork, and starts it again afterwards
_SCATTERED_BLOCKS, _MOST_BYTES = 400, 1 << 16
_COMPILE_WORKER = b"torch/_inductor/compile_worker"  # idle where nothing compiles

_frozen: list[int] = []  # how many objects, as long as nobody else froze any


def set_up_may_start_threads() -> bool:
    """Whether computing takes more than one thread."""
    import torch

    threads: int = torch.get_num_threads()
    return threads > 1


def preload_compiler(job: Job) -> None:
    """Import and probe what every fork would import and probe again: an optimizer imports Dynamo even where nothing is
    compiled."""
    import torch._dynamo

    if not job.requested.compile or job.requested.backend != "inductor":
        return
    import torch._inductor.compile_fx  # noqa: F401

    with suppress(Exception):  # a fork finds out by itself
        from torch._inductor.cpu_vec_isa import pick_vec_isa

        pick_vec_isa()


def preload_imports(job: Job) -> None:
    """Import what the script imports in its first lines, up to the first statement that is no import, or that imports a
    module of the user's own: nothing of the script's could have run before them."""
    if job.module:
        return
    own_folders = {os.path.dirname(os.path.realpath(job.program)), os.getcwd()}
    with suppress(Exception):  # the script itself will say what is wrong
        for name in _first_imports(ast.parse(Path(job.program).read_bytes()).body):
            specification = importlib.util.find_spec(name.partition(".")[0])
            if specification is None or specification.origin is None:
                return
            # What is part of Python itself, such as `os`, has no place.
            # A module is the user's if it is below the script's folder, but in no environment that is there, too.
            path = os.path.realpath(specification.origin)
            is_below = any(path.startswith(folder.rstrip("/") + "/") for folder in own_folders)
            is_installed = "site-packages" in path or path.startswith(sys.prefix)
            if specification.has_location and is_below and not is_installed:
                return
            importlib.import_module(name)


def _first_imports(statements: list[ast.stmt]) -> Iterator[str]:
    for statement in statements:
        match statement:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=str(module), level=0):
                yield module
            case ast.Expr(value=ast.Constant()):  # its docstring
                pass
            case _:
                return


def be_parent(scratch: str, perform: Callable[[str], None]) -> None:
    """Fork whenever it is told to, until nobody is there any more; each fork performs what is in its folder, and exits.

    What it is told: the number of a fork to be made, upon which it says the process's id; or, negative, the id of one
    that has ended, upon which it says its status.
    """
    told_by, says_to = os.open(Path(scratch, TURNS), os.O_RDONLY), os.open(Path(scratch, WAITING), os.O_WRONLY)
    os.write(says_to, message(1))
    while number := int(os.read(told_by, MESSAGE_BYTES) or 0):
        if number < 0:
            os.write(says_to, message(os.waitpid(-number, 0)[1]))
            continue
        parent, child = os.getpid(), os.fork()
        if not child:
            os.close(told_by)
            os.close(says_to)
            _be_fork(parent, os.path.realpath(Path(scratch, f"{FORK}{number}")), perform)
        os.write(says_to, message(child))


def _be_fork(parent: int, folder: str, perform: Callable[[str], None]) -> None:
    try:
        libc = ctypes.CDLL(None)
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it was killed earlier
            os._exit(1)
        os.setsid()
        beginning = msgspec.json.decode(Path(folder, BEGINNING).read_bytes(), type=Beginning)
        if beginning.environment is not None:
            os.environ.clear()
            os.environ.update(beginning.environment)
            tempfile.tempdir = None
        with open(beginning.log, "wb") as log:
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
        if (holder := Path(folder, VIEW)).exists():
            file_view.enter(int(holder.read_text()))
        # Blocks of random sizes, each magnitude as often, that are never freed: some MB.
        libc.malloc.restype = ctypes.c_void_p
        sizes = random.SystemRandom()  # leaves the training's random numbers as they are
        for _ in range(_SCATTERED_BLOCKS):
            libc.malloc(ctypes.c_size_t(round(_MOST_BYTES ** sizes.random())))
        perform(folder)
        sys.stdout.flush()
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)


def freeze_objects() -> None:
    """Set aside everything there is, before a fork; not if the program has set something aside itself."""
    if not gc.get_freeze_count():
        gc.collect()
        gc.freeze()
        _frozen[:] = [gc.get_freeze_count()]


def thaw_objects() -> None:
    """Undo that in a fork; what the program has set aside since then stays there."""
    if _frozen and gc.get_freeze_count() == _frozen[0]:
        gc.unfreeze()
    _frozen.clear()


def why_not() -> str:
    """Why forks of this process could hang or fail; empty if it has one thread, no process, and has touched no device.

    Threads do not survive a fork: a pool of them, such as that of OpenMP once it has computed, would be waited for
    forever. OpenBLAS ends its pool before every fork, so the first fork is a test.
    """
    if was_touched():
        return "it has touched the GPU"
    names = [comm_file.read_text().strip() for comm_file in Path("/proc/self/task").glob("*/comm")]
    threads = sum(name not in _SAFE_THREADS for name in names)
    if threads != 1:
        return f"it has {threads} threads"
    return f"it has {processes} of its own" if (processes := own_processes()) else ""


def own_processes() -> str:
    """`2 processes`: how many this one started that still run, without those of the compiler; empty if there are none,
    or the system does not tell."""
    count = 0
    for listed in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError):
            for child in listed.read_text().split():
                count += _COMPILE_WORKER not in Path(f"/proc/{child}/cmdline").read_bytes()
    return many(count, "process", "processes") if count else ""
