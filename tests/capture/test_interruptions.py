"""A capture that is interrupted or killed keeps what was finished, and leaves nothing running."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import warm

from tests.capture.capturing import FAILING, write_earlier
from tracekit import run as runs
from tracekit.base import interruption
from tracekit.base.workspace import temporary_home
from tracekit.capture import process

CAPTURE = """
import contextlib, sys, warm
from tracekit.capture import messages
from tracekit.capture.harness import Options, capture
recipe, out, passes, unforked, *variants = sys.argv[1:]
forked = contextlib.ExitStack()
forked.enter_context(warm.passes())
def tell(line):
    messages.on_stderr(line)
    if unforked and line.startswith(unforked):
        forked.close()
capture(Options(recipe, variants, steps=1, warmup=0, passes=int(passes), out=out, tell=tell))
"""


def start_capture(recipe, out, *variants, passes=1, unforked=""):
    """Start a capture in a separate process; once it prints `unforked`, it starts passes as it does outside tests."""
    arguments = [str(recipe), str(out), str(passes), unforked, *(variants or ("eager", "sound"))]
    return subprocess.Popen(
        [sys.executable, "-c", CAPTURE, *arguments],
        **warm.lend(),
        stderr=subprocess.PIPE,
        text=True,
        # A shell without job control starts background jobs that ignore Ctrl-C, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509
    )


def read_until(process, line):
    return any(line in said for said in process.stderr)


def passes_of(pid):
    """The passes that this capture started and that are still running."""
    return running(f"{temporary_home('tracekit-passes')}/{pid}-")


def running(mark):
    """The processes that have this text in their command line."""
    folders = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark in (folder / "cmdline").read_text():
                folders.append(folder)
    return folders


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_ctrl_c_and_its_like_keep_what_was_finished(write_recipe, tmp_path, ending):
    capturing = start_capture(write_recipe(FAILING), tmp_path / "run.json")
    assert read_until(capturing, "sound: measuring")
    capturing.send_signal(ending)
    said = capturing.communicate(timeout=30)[1]
    run = runs.read(tmp_path / "run.json")
    assert [(variant.name, variant.outcome) for variant in run.variants] == [
        ("eager", "ok"),
        ("sound", "interrupted"),
    ]
    assert "contains eager.\n" in said
    assert not passes_of(capturing.pid)


def test_an_interruption_of_later_passes_loses_nothing(write_recipe, tmp_path):
    capturing = start_capture(write_recipe(FAILING), tmp_path / "run.json", passes=8)
    assert read_until(capturing, "Measuring again")
    capturing.send_signal(signal.SIGINT)
    said = capturing.communicate(timeout=30)[1]
    run = runs.read(tmp_path / "run.json")
    assert [(variant.name, variant.outcome) for variant in run.variants] == [("eager", "ok"), ("sound", "ok")]
    assert "contains eager, sound.\n" in said
    assert not passes_of(capturing.pid)


def test_an_interruption_waits_for_what_is_being_started():
    said = []
    with pytest.raises(KeyboardInterrupt), interruption.deferred():  # noqa: PT012
        signal.raise_signal(signal.SIGINT)
        said.append("started")
    assert said == ["started"]


@pytest.mark.skipif(sys.platform != "linux", reason="nothing tells who left the group elsewhere")
def test_asked_to_end_it_leaves_neither_folder_nor_grandchildren(write_recipe, tmp_path):
    text = """
import subprocess, sys
def setup(ctx):
    line = f"import time; time.sleep(600)  # tracekit-pass-{sys.argv[0]}"
    for apart in (False, True):
        subprocess.Popen([sys.executable, "-c", line], start_new_session=apart)
    open(ctx.mark, "w").close()
    return lambda: None if __import__("time").sleep(0.1) else None
PARAMS = {"mark": "%s"}
"""
    mark = Path("/dev/shm", f"{tmp_path.name}-{os.getpid()}")  # which no view hides
    recipe = write_recipe(text % mark)
    capturing = start_capture(recipe, tmp_path / "run.json", "eager", unforked="eager: measuring")
    deadline = time.monotonic() + 60
    while not mark.exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    mark.unlink()
    assert len(running(str(recipe))) >= 3
    capturing.terminate()
    said = capturing.communicate(timeout=30)[1]
    assert "Nothing was written" in said
    left = {each.name for each in tmp_path.iterdir()} - {"__pycache__"}  # of the recipe, if Python writes such files
    assert left == {"recipe.py"}
    assert not running(str(recipe))


@pytest.mark.skipif(sys.platform != "linux", reason="children outlive a killed parent elsewhere")
@pytest.mark.parametrize("moment", ["eager: taking", "sound: measuring"])
def test_killed_at_any_moment_the_run_is_whole_and_nothing_runs_on(write_recipe, tmp_path, moment):
    out = tmp_path / "run.json"
    earlier = write_earlier(out)
    capturing = start_capture(write_recipe(FAILING), out, unforked=moment)
    assert read_until(capturing, moment)
    capturing.kill()
    capturing.wait()
    if moment.startswith("sound"):
        assert runs.read(out).planned == ["eager", "sound"]
        assert [variant.name for variant in runs.read(out).variants] == ["eager"]
        assert [each.read_bytes() for each in tmp_path.glob("run-*.json")] == [earlier]
    else:
        assert out.read_bytes() == earlier
    deadline = time.monotonic() + 60
    quiet = 0
    while quiet < 5 and time.monotonic() < deadline:  # a process that is just being started has no command line yet
        quiet = 0 if passes_of(capturing.pid) else quiet + 1
        time.sleep(0.1)
    assert quiet == 5
    # The next capture removes what the killed one left, unless another one does already.
    with process.scratch() as scratch:
        left = [*scratch.parent.glob(f"{capturing.pid}-*")]
        while any(each.exists() for each in left) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert not [each for each in left if each.exists()]
