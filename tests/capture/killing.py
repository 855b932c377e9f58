"""Kills captures at any moment, and compares the user's files with what they were before."""

import contextlib
import importlib.util
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import warm

CAPTURE = """
import os, sys, warm
from tracekit.capture import process
from tracekit.capture.guardian import folder_lock
from tracekit.capture.job import Job
with folder_lock(), warm.passes(), process.scratch() as scratch:
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
if importlib.util.find_spec("h5py"):
    UNSEEN["h5py"] = (
        "    import h5py\n"
        "    with h5py.File('a.pt', 'w') as file: file['turn'] = [turn] * 999\n"
        "    with h5py.File('new.h5', 'a') as file: file[f'turn{turn}'] = turn\n"
    )


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


def altered(
    folder: Path, name: str, *, view: bool, moment: random.Random, reboot: bool = False, beside: bool = False
) -> dict[str, str]:
    """The user's files that are not as before once a capture of that script was killed, and what is left behind.

    Most are killed while the script writes, some before, some while it ends. With `reboot`, everything that the capture
    started is killed, too, and the temporary folder emptied. With `beside`, a second capture is tried in its folder,
    and one in another folder is killed only after the files of the first have been looked at.
    """
    temporary, state = folder / "temporary", folder / "state"
    temporary.mkdir(parents=True)
    more = {"TMPDIR": str(temporary), "XDG_STATE_HOME": str(state), **({} if view else {"TRACEKIT_VIEW": "off"})}
    lent = warm.lend()
    lent["env"] = {**lent["env"], **more}
    lent["env"].pop("TRACEKIT_VERIFY", None)  # forked passes reach more moments, and are killed like others
    captures = [_Capture(folder / "here", name, moment, lent, endless=beside)]
    if beside:
        second = _Capture(folder / "here", name, moment, lent)
        assert second.process.wait() == 1  # it was refused
        second.end()
        captures.append(_Capture(folder / "there", name, moment, lent))
    ends_as: dict[str, str] = {}
    for capture in captures:
        capture.wait(moment)
        if reboot:
            for process in _with(str(state), str(temporary)):
                with contextlib.suppress(OSError):
                    os.kill(process, signal.SIGKILL)
        capture.end()
        ends = time.monotonic() + 30
        marks = [str(state), str(temporary)] if capture is captures[-1] else [f"/{capture.process.pid}-"]
        while [*_with(*marks)] and time.monotonic() < ends:
            time.sleep(0.02)
        if reboot:
            shutil.rmtree(temporary)
        restored = "" if view else tracekit("restore", lent["env"])
        ends_as |= {
            path: "kept" if f"kept: {capture.here / path} (" in restored else how
            for path, how in capture.changed().items()
            if not (reboot and how == "left behind")
        }
        capture.mark.unlink(missing_ok=True)
    return ends_as


class _Capture:
    """A capture of that script in that folder, which runs in a process of its own until it is ended."""

    def __init__(
        self, here: Path, name: str, moment: random.Random, lent: dict[str, Any], *, endless: bool = False
    ) -> None:
        if not here.exists():
            make_files(here)
        self.here, self._before = here, files(here)
        self.mark = Path("/dev/shm", f"tracekit-killed-{os.getpid()}-{moment.randrange(1 << 40)}")  # no view hides it
        turns = 1 << 30 if endless else moment.choice([3, 30, 1 << 30, 1 << 30])
        script = here.with_name(f"train-{self.mark.name}.py")
        script.write_text(HEAD.format(turns=turns, mark=str(self.mark)) + {**SEEN, **UNSEEN}[name])
        self.process = subprocess.Popen(
            [sys.executable, "-c", CAPTURE, str(script)],
            cwd=here,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            **lent,
        )
        assert self.process.stdout is not None
        self.process.stdout.readline()

    def wait(self, moment: random.Random) -> None:
        """Until a random moment, mostly after the script has begun to write."""
        ends = time.monotonic() + moment.choice([1, 30, 30, 30])
        while not self.mark.exists() and time.monotonic() < ends and self.process.poll() is None:
            time.sleep(0.005)
        time.sleep(moment.uniform(0, 0.3))

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()

    def changed(self) -> dict[str, str]:
        """The files that are not as before the capture."""
        now = files(self.here)
        return {
            path: "left behind" if path not in self._before else "altered" if path in now else "lost"
            for path in now.keys() | self._before.keys()
            if now.get(path) != self._before.get(path)
        }


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
