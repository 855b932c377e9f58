"""A profiler's events as a compressed trace, without any step that never finished."""

import gzip
from pathlib import Path
from typing import Any


def export(profiler: Any, path: Path, last: int) -> None:
    """Write the trace; `last` is the step that was to be the last, and it may have been stopped before or in it."""
    unfinished = profiler.step_num
    if unfinished > last:
        profiler.export_chrome_trace(str(path))
        return
    # The range was opened when the step before ended, and what it holds is not a step: evaluation, saving.
    name, other = f'"ProfilerStep#{unfinished}"'.encode(), b'"after the last step"'
    raw = path.with_suffix("")
    profiler.export_chrome_trace(str(raw))
    with open(raw, "rb") as source, gzip.open(path, "wb", compresslevel=5) as target:
        target.writelines(line.replace(name, other) for line in source)
    raw.unlink()
