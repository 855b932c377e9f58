"""Exports a profiler's events as a compressed trace, without a step that never finished."""

import gzip
from pathlib import Path
from typing import Any


def export(profiler: Any, path: Path, last: int) -> None:
    """Write the trace; `last` is the intended last step, before or in which the recording may have been stopped."""
    unfinished = profiler.step_num
    if unfinished > last:
        profiler.export_chrome_trace(str(path))
        return
    # The range was opened when the previous step ended, but what it contains is not a step: evaluation, saving.
    name, replacement = f'"ProfilerStep#{unfinished}"'.encode(), b'"after the last step"'
    raw = path.with_suffix("")
    profiler.export_chrome_trace(str(raw))
    with open(raw, "rb") as source, gzip.open(path, "wb", compresslevel=5) as target:
        target.writelines(line.replace(name, replacement) for line in source)
    raw.unlink()
