"""Which traces of a folder are windows of one process, as a profiler whose schedule repeats leaves them?"""

import re
from collections.abc import Sequence
from pathlib import Path

from tracekit.trace.facts import Breach

# As torch.profiler.tensorboard_trace_handler names them: a worker, which is host and process unless it is given a name,
# and when the window was written, ns.
_WINDOW = re.compile(r"(.+_\d+)\.(\d{12,})\.pt\.trace\.json(?:\.gz|\.zst)?", re.DOTALL)


def last_windows(traces: Sequence[Path]) -> dict[Path, Breach | None]:
    """The traces, but of the windows of one process the last only, with what says so."""
    windows: dict[str, list[Path]] = {}
    for path in traces:
        match = _WINDOW.fullmatch(path.name)
        windows.setdefault(match[1] if match else path.name, []).append(path)
    last = (max(group, key=_written) for group in windows.values())
    return {
        path: _left_out(len(group), path) if len(group) > 1 else None
        for path, group in zip(last, windows.values(), strict=True)
    }


def _written(path: Path) -> int:
    match = _WINDOW.fullmatch(path.name)
    return int(match[2]) if match else 0


def _left_out(number: int, shown: Path) -> Breach:
    return Breach(
        "windows",
        "note",
        f"the folder has {number} windows of this process, which are one run: this is the last, {shown.name}. "
        "Give the files to compare windows.",
    )
