"""Kills captures at any moment, and compares the user's files with what they were before."""

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import warm

CAPTURE = """
import os, sys, warm
from tracekit.capture import process
from tracekit.capture.job import Job
with warm.passes(), process.scratch() as scratch:
    job = Job(stage="measure", program=sys.argv[1], is_script=True)
    print("begins", flush=True)
    process.perform(job, scratch, scratch / "measure.log", 60)
"""
HEAD = """import mmap, os, shutil, sqlite3, subprocess, sys, torch
for turn in range({turns}):
    if turn == 1:
        os.close(os.open({mark!r}, os.O_CREAT | os.O_WRONLY))
"""
SEEN = {  # by Python, so that a journal can undo it
    "write": "    open('a.pt', 'w').write(str(turn) * 9999)\n",
    "append": "    open('log.txt', 'a').write(str(turn))\n",
    "save": "    torch.save(torch.zeros(turn % 9999), 'a.pt'); torch.save(1, 'new.pt')\n",
    "rename": (
        "    os.rename('a.pt', 'moved'); open('a.pt', 'w').write('other')\n"
        "    os.replace('a.pt', 'b.pt'); os.rename('moved', 'a.pt')\n"
    ),
    "delete": (
        "    [os.remove(each) for each in ('a.pt', 'log.txt') if os.path.exists(each)]\n"
        "    open('a.pt', 'w').write('new')\n"
    ),
    "truncate": "    os.truncate('a.pt', 7); os.truncate('log.txt', 0)\n",
    "map": "    with open('a.pt', 'r+b') as file, mmap.mmap(file.fileno(), 0) as seen: seen[:9] = b'x' * 9\n",
    "sqlite": (
        "    table = sqlite3.connect('table.db'); table.execute('insert into t values (?)', (turn,))\n"
        "    table.commit(); table.close()\n"
    ),
    "folders": "    shutil.rmtree('deep', ignore_errors=True); os.makedirs('deep'); open('deep/a', 'w').write('n')\n",
    "elsewhere": "    os.chdir('deep'); open('a', 'w').write('n'); os.chdir(os.pardir)\n",
}
UNSEEN = {  # which only a view keeps from the files
    "child": "    subprocess.run(['sh', '-c', 'echo x > a.pt; rm -f b.pt; mv log.txt other; echo y > log.txt'])\n",
    "c": (
        "    import ctypes; libc = ctypes.CDLL(None); libc.truncate(b'a.pt', 3)\n"
        "    libc.rename(b'log.txt', b'gone'); libc.unlink(b'b.pt')\n"
    ),
}


def make_files(here: Path) -> None:
    """What a user may have in a folder, 20 kB."""
    (here / "deep").mkdir(parents=True)
    for name in ("a.pt", "b.pt", "log.txt", "deep/a", "deep/b"):
        (here / name).write_bytes(random.Random(name).randbytes(4000))
    import sqlite3

    with contextlib.closing(sqlite3.connect(here / "table.db")) as table:
        table.execute("create table t (n)")
        table.commit()


def files(here: Path) -> dict[str, tuple[int, bytes]]:
    """Every file of the user's, with its mode."""
    return {
        str(each.relative_to(here)): (each.stat().st_mode, each.read_bytes())
        for each in sorted(here.rglob("*"))
        if each.is_file()
    }


def altered(folder: Path, name: str, *, view: bool, moment: random.Random, reboot: bool = False) -> dict[str, str]:
    """The user's files that are not as before once a capture of that script was killed, and what is left behind.

    Most are killed while the script writes, some before, some while it ends. With `reboot`, everything that the capture
    started is killed, too, and the temporary folder emptied.
    """
    here, temporary, state = (folder / each for each in ("here", "temporary", "state"))
    if not here.exists():
        make_files(here)
    temporary.mkdir(parents=True)
    mark = Path("/dev/shm", f"tracekit-killed-{os.getpid()}-{moment.randrange(1 << 40)}")  # which no view hides
    turns = moment.choice([3, 30, 1 << 30, 1 << 30])
    (folder / "train.py").write_text(HEAD.format(turns=turns, mark=str(mark)) + {**SEEN, **UNSEEN}[name])
    before = files(here)
    more = {"TMPDIR": str(temporary), "XDG_STATE_HOME": str(state), **({} if view else {"TRACEKIT_VIEW": "off"})}
    lent = warm.lend()
    lent["env"] = {**lent["env"], **more}
    lent["env"].pop("TRACEKIT_VERIFY", None)  # forked passes reach more moments, and are killed like others
    capture = subprocess.Popen(
        [sys.executable, "-c", CAPTURE, str(folder / "train.py")],
        cwd=here,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        **lent,
    )
    assert capture.stdout is not None
    capture.stdout.readline()
    ends = time.monotonic() + moment.choice([1, 30, 30, 30])
    while not mark.exists() and time.monotonic() < ends and capture.poll() is None:
        time.sleep(0.005)
    mark.unlink(missing_ok=True)
    time.sleep(moment.uniform(0, 0.3))
    if reboot:
        for process in _with(str(state), str(temporary)):
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)
    capture.kill()
    capture.wait()
    capture.stdout.close()
    ends = time.monotonic() + 30
    while [*_with(str(state), str(temporary))] and time.monotonic() < ends:
        time.sleep(0.02)
    if reboot:
        shutil.rmtree(temporary)
    restored = "" if view else tracekit("restore", lent["env"])
    now = files(here)
    ends_as = {
        path: "kept" if f"kept: {here / path} (" in restored else "altered" if path in now else "lost"
        for path in before
        if now.get(path) != before[path]
    }
    return ends_as | (dict.fromkeys(now.keys() - before.keys(), "left behind") if not reboot else {})


def tracekit(verb: str, environment: dict[str, str]) -> str:
    """What that verb prints, on both outputs."""
    command = [sys.executable, "-m", "tracekit", verb]
    return subprocess.run(
        command, env=environment, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ).stdout


def _with(*marks: str) -> Iterator[int]:
    """The processes that have one of these texts in their command line or among their variables."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            text = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
            if process.name != str(os.getpid()) and any(mark.encode() in text for mark in marks):
                yield int(process.name)
