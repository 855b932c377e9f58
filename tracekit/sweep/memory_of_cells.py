"""Works out once what holds the memory of each cell, and stores it beside the cell's run."""

from collections.abc import Callable, Iterable

from tracekit.errors import TracekitError
from tracekit.study import CellResult
from tracekit.study.store import MEMORY, RUN
from tracekit.sweep import messages


def summarize_memory(results: Iterable[CellResult], tell: Callable[[str], None]) -> None:
    """Write the summary of each cell that has a recording but no summary yet."""
    for result in results:
        if _has_summary(result) or not _has_recording(result):
            continue
        from tracekit.memory.summary import write_summary  # imported only here, where traces are read

        try:
            write_summary(result.folder / RUN)
        except Exception as error:  # whatever a recording holds, it must not end a sweep of many hours
            tell(messages.no_memory(result.cell, error))


def _has_summary(result: CellResult) -> bool:
    if not (result.folder / MEMORY).is_file():
        return False
    from tracekit.memory.summary import read_summary

    return read_summary(result.folder) is not None


def _has_recording(result: CellResult) -> bool:
    run, variant = result.run, result.variant
    try:
        return run is not None and variant is not None and bool(run.trace_path(result.folder / RUN, variant, "detail"))
    except TracekitError:
        return False
