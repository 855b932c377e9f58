"""Hundreds of captures killed at random moments: see `tests/capture/killing.py`."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.capture.killing import SEEN, UNSEEN, altered, make_files
from tests.capture.test_views import runs

pytestmark = pytest.mark.skipif(not os.environ.get("TRACEKIT_VERIFY"), reason="TRACEKIT_VERIFY is not set: make verify")
_ROUNDS = 300


@pytest.mark.parametrize("number", range(_ROUNDS))
def test_killed_at_a_random_moment_no_file_is_altered(tmp_path, number):
    moment = random.Random(number)
    view = number % 2 == 0
    reboot = number % 6 == 1
    name = moment.choice([*SEEN, *(UNSEEN if view else ())])
    left = altered(tmp_path, name, view=view, moment=moment, reboot=reboot, beside=number % 6 in (2, 3))
    assert set(left.values()) <= ({"kept"} if reboot else set())


CAPTURE = """
import sys
from tracekit.capture import process
from tracekit.capture.job import Job
with process.scratch() as scratch:
    job = Job(stage="measure", program=sys.argv[1], is_script=True, in_place=sys.argv[2] == "in place")
    process.perform(job, scratch, scratch / "measure.log", 60)
"""
PASS = """import os, subprocess, time
child = subprocess.Popen(["sleep", "999"], start_new_session=True)
with open({mark!r}, "w") as file:
    print(os.getpid(), child.pid, file=file)
time.sleep(999)
"""


@pytest.mark.parametrize("mode", ["view", "journal", "in place"])
def test_a_pass_dies_with_its_capture(tmp_path, mode):
    """What it left running dies, too, except where it writes in place: nothing looks after that one."""
    mark = Path("/dev/shm", f"tracekit-dies-{os.getpid()}-{mode[:2]}")
    (tmp_path / "train.py").write_text(PASS.format(mark=str(mark)))
    more = {"XDG_STATE_HOME": str(tmp_path / "state"), "TRACEKIT_VIEW": "on" if mode == "view" else "off"}
    capture = subprocess.Popen(
        [sys.executable, "-c", CAPTURE, str(tmp_path / "train.py"), mode],
        cwd=tmp_path,
        env={**os.environ, **more},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    ends = time.monotonic() + 120
    while not (mark.exists() and mark.read_text().count(" ")) and time.monotonic() < ends:
        time.sleep(0.05)
    numbers = mark.read_text().split()
    mark.unlink()
    capture.kill()
    capture.wait()
    looked_at = numbers[: 1 if mode == "in place" else 2]
    while any(map(runs, looked_at)) and time.monotonic() < ends:
        time.sleep(0.05)
    assert not [*filter(runs, looked_at)]
    for number in filter(runs, numbers):
        os.kill(int(number), signal.SIGKILL)


@pytest.fixture(params=["full", "read-only"])
def small_disk(request, tmp_path):
    """The folder of a disk that is nearly full, with room for a few backups, or read-only."""
    here = tmp_path / "here"
    here.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", here], check=False).returncode:
        pytest.skip("only root can make a small disk")
    make_files(here)
    (here / "filling").write_bytes(bytes(200_000))
    if request.param == "read-only":
        subprocess.run(["mount", "-o", "remount,ro", here], check=True)
    yield tmp_path
    subprocess.run(["umount", "--lazy", here], check=True)


@pytest.mark.parametrize("view", [True, False])
@pytest.mark.parametrize("name", SEEN)
def test_on_a_full_or_a_read_only_disk_either(small_disk, name, view):
    assert altered(small_disk, name, view=view, moment=random.Random(name)) == {}
