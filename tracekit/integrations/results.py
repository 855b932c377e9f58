"""What is read of a training's traces after its loop: by a process of its own, so that neither the memory that reading
takes nor a defect of the reader can harm a training whose results may not be saved yet.
"""

import glob
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tracekit.errors.training import UnreadableResultsError
from tracekit.installed import python_path

_MOST_SECONDS = 300.0  # the other ranks may be waiting for this one
_PREFIX = "tracekit/share/"
_handled: list[Path] = []  # the last trace that `tracekit.trace_handler` has written in this process


def note_trace(trace: Path) -> None:
    """Note that a profiler of the training's own has left a trace."""
    _handled[:] = [trace]


def forget_traces() -> None:
    """Forget it: another training begins, whose shares it would not show."""
    _handled.clear()


def latest_trace(record: Path | None) -> Path | None:
    """The last trace that the watch of this record took, or else the last one of a handler; None if there is none."""
    triggered = record.parent.glob(f"{glob.escape(record.stem)}-step*.pt.trace.json.gz") if record is not None else ()
    there = [*filter(Path.is_file, _handled), *sorted(triggered, key=lambda trace: trace.stat().st_mtime_ns)]
    return there[-1] if there else None


def write_report(run_file: Path, report: Path) -> None:
    """Write the run's report as a page. Raises UnreadableResultsError."""
    _tracekit("report", str(run_file), "--format", "html", "-o", str(report))


def shares(path: Path) -> dict[str, float]:
    """Which part of a step's wall time each bucket takes, of its last variant that can be answered: 0.2 under
    `tracekit/share/sync_stall`; empty buckets are left out. Raises UnreadableResultsError."""
    document = json.loads(_tracekit("report", str(path), "--format", "json"))
    means: list[dict[str, Any]] = [variant["mean"] for variant in document["variants"] if variant["mean"]]
    for mean in reversed(means):
        if mean["wall_ns"]:
            return {f"{_PREFIX}{bucket}": ns / mean["wall_ns"] for bucket, ns in mean["wall"].items() if ns}
    return {}


def _tracekit(*arguments: str) -> str:
    """What that command writes to stdout."""
    command = [sys.executable, "-P", "-m", "tracekit", *arguments]
    try:
        done = subprocess.run(
            command,
            env={**os.environ, "PYTHONPATH": python_path()},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_MOST_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise UnreadableResultsError(arguments[1], f"it took more than {_MOST_SECONDS:.0f} s") from None
    except OSError as error:
        raise UnreadableResultsError(arguments[1], error.strerror or str(error)) from None
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        raise UnreadableResultsError(arguments[1], lines[-1] if lines else f"exit code {done.returncode}")
    return done.stdout
