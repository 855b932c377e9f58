"""Hundreds of captures killed at random moments: see `tests/capture/killing.py`."""

import os
import random
import subprocess

import pytest

from tests.capture.killing import SEEN, UNSEEN, altered, make_files

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
