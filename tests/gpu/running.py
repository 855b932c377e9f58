"""tracekit's own command line, as its user calls it."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def tracekit(
    *arguments: object, seconds: float, folder: Path = ROOT, cores: Collection[int] = ()
) -> subprocess.CompletedProcess[str]:
    """Return its output and exit code. At the time limit it is interrupted as by Ctrl-C, and keeps what it has.

    Only one capture at a time runs in a folder: those that run side by side have a folder each, and cores if given.
    """
    command = [sys.executable, "-m", "tracekit", *map(str, arguments)]
    child = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if cores:
        os.sched_setaffinity(child.pid, cores)
    try:
        said = child.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        child.send_signal(signal.SIGINT)
        said = child.communicate()
    return subprocess.CompletedProcess(command, child.returncode, *said)


def variants(run: Path) -> dict[str, dict[str, Any]]:
    """The variants of a run file, by name; none if there is no file."""
    return {each["name"]: each for each in json.loads(run.read_text())["variants"]} if run.exists() else {}


def document(run: Path) -> dict[str, Any]:
    """The report of a run. Raises RuntimeError with what it says instead."""
    done = tracekit("report", run, "--format", "json", seconds=60)
    if not done.stdout:
        raise RuntimeError(f"no report of {run}: exit code {done.returncode}, {done.stderr}")
    made: dict[str, Any] = json.loads(done.stdout)
    return made


def findings(run: Path) -> list[dict[str, Any]]:
    """What the report finds in a run, most valuable first."""
    found: list[dict[str, Any]] = document(run)["findings"]
    return found
