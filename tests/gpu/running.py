"""tracekit's own command line, as its user calls it."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def tracekit(*arguments: object, seconds: float) -> subprocess.CompletedProcess[str]:
    """Return its output and exit code. At the time limit it is interrupted as by Ctrl-C, and keeps what it has."""
    command = [sys.executable, "-m", "tracekit", *map(str, arguments)]
    child = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        said = child.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        child.send_signal(signal.SIGINT)
        said = child.communicate()
    return subprocess.CompletedProcess(command, child.returncode, *said)


def variants(run: Path) -> dict[str, dict[str, Any]]:
    """The variants of a run file, by name; none if there is no file."""
    return {each["name"]: each for each in json.loads(run.read_text())["variants"]} if run.exists() else {}
