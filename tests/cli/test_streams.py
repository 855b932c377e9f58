"""What a shell may do to a verb: a stdout that is closed, full or narrow, and signals."""

import os
import signal
import subprocess
import sys
import time

import pytest
from small import training

from tracekit.cli import main


def test_a_reader_that_leaves_early_is_no_failure(tmp_path):
    path = training(tmp_path / "eager.json", steps=400)
    piped = f"{sys.executable} -m tracekit report {path} --format json | head -c 10"
    ran = subprocess.run(["bash", "-c", f"set -o pipefail; {piped}"], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("where", [">/dev/full", ">&-"])
def test_a_stdout_that_takes_nothing_is_told_of(tmp_path, where, unbuffered):
    trace = training(tmp_path / "eager.json")
    for verb in (f"report {trace}", "--help", "--version"):
        ran = shell(f"{verb} {where}", PYTHONUNBUFFERED=unbuffered)
        assert (ran.returncode, ran.stdout, ran.stderr.count("\n")) == (1, "", 1)
        assert ran.stderr.startswith("tracekit: Standard output cannot be written")
    ran = shell(f"report {trace} -o {tmp_path}/report.txt {where}")
    assert (ran.returncode, ran.stderr) == (0, f"Wrote {tmp_path}/report.txt\n")


def test_streams_that_are_closed_or_know_few_signs(tmp_path):
    trace = training(tmp_path / "eager.json")
    ran = shell("report - <&-")
    assert (ran.returncode, ran.stderr.startswith("tracekit: standard input cannot be read")) == (1, True)
    ran = shell(f"export {trace} -o {tmp_path}/tables 2>&-")
    assert (ran.returncode, ran.stdout) == (0, "")
    for encoding in ("ascii", "latin-1"):
        ran = shell(f"report {trace}; tracekit capture --help", PYTHONIOENCODING=encoding)
        assert "eager takes" in ran.stdout
        assert "Error" not in ran.stderr


def shell(command: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    command = f'tracekit() {{ {sys.executable} -m tracekit "$@"; }}; tracekit {command}'
    return subprocess.run(
        ["bash", "-c", command],
        env={**os.environ, **environment},
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)])
def test_a_signal_leaves_nothing_behind(tmp_path, number, code):
    pipe, work, out = tmp_path / "pipe", tmp_path / "cache" / "work", tmp_path / "tables"
    os.mkfifo(pipe)
    running = subprocess.Popen(
        [sys.executable, "-m", "tracekit", "export", str(pipe), "-o", str(out)],
        env={**os.environ, "TRACEKIT_CACHE_DIR": str(work.parent)},
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),  # noqa: PLW1509 - under nohup, it would be ignored
        stderr=subprocess.PIPE,
        text=True,
    )
    with pipe.open("w") as trace:
        trace.write('{"traceEvents": [')
        trace.flush()
        until(lambda: any(work.glob("*/spooled")))
        running.send_signal(number)
        time.sleep(0.5)  # it waits for more input, which also wakes it if it fell asleep just as the signal arrived
    said = running.communicate(timeout=60)[1]
    assert (running.returncode, said) == (code, "tracekit: interrupted\n")
    assert not [*work.iterdir()]
    assert not out.exists()


def until(true):
    for _ in range(600):
        if true():
            return
        time.sleep(0.1)
    raise TimeoutError


def test_a_piped_report_is_as_wide_as_is_asked(tmp_path, capsys, monkeypatch):
    path = str(training(tmp_path / "eager.json"))
    for columns, widest in (("60", 60), ("nonsense", 160), ("0", 160)):
        monkeypatch.setenv("COLUMNS", columns)
        assert main(["report", path]) == 0
        assert max(map(len, capsys.readouterr().out.splitlines())) <= widest
