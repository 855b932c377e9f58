"""Reads all traces with the readers, a few at a time: one that is damaged, or kills its reader, affects no other."""

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from pathlib import Path

from tracekit.fleet.one_rank import Lost
from tracekit.fleet.readers import Read, Readers

_SECONDS = 2.0  # between two checks whether any reader is left
_DIED = "the process that read it died twice, perhaps because memory ran out"
RankWatch = Callable[[int, int], None]  # called with the number of finished traces, and of all traces


def read_all(
    paths: Sequence[Path], readers: Readers, *, infer_steps: bool = True, watch: RankWatch = lambda done, of: None
) -> dict[Path, Read]:
    """For each path, its columns, or why there are none. If a reader dies, the traces it may have died of are read
    again, each alone."""
    known: dict[Path, Read] = {}

    def keep(path: Path, read: Read) -> None:
        known[path] = read
        watch(len(known), len(paths))

    for path in _one_pass(paths, readers, readers.width, infer_steps, keep):
        for _ in _one_pass([path], readers, 1, infer_steps, keep):
            keep(path, Lost(path, _DIED))
    return {path: known[path] for path in paths}


def _one_pass(
    paths: Sequence[Path], readers: Readers, width: int, infer_steps: bool, keep: Callable[[Path, Read], None]
) -> list[Path]:
    """Read the traces, that many at a time; returns those that were being read when a reader died."""
    waiting, running, suspects = deque(paths), dict[Future[Read], Path](), list[Path]()
    broken = False
    while waiting or running:
        while waiting and len(running) < width and not broken:
            path = waiting.popleft()
            try:
                running[readers.submit(path, infer_steps)] = path
            except BrokenExecutor:  # a reader died since, of a trace that is still being read
                broken = True
                waiting.appendleft(path)
        done, _ = wait(running, _SECONDS, FIRST_COMPLETED)
        if not done and (why := readers.why_idle()) is not None:
            for path in [*running.values(), *waiting]:
                keep(path, Lost(path, why))
            return suspects
        for future in done:
            path = running.pop(future)
            try:
                keep(path, future.result())
            except BrokenExecutor:
                broken = True
                suspects.append(path)
            except Exception as error:  # a cluster raises its own exceptions when workers die while reading a trace
                keep(path, Lost(path, f"reading it failed: {error or type(error).__name__}"))
        if broken and not running:
            readers.restart()
            broken = False
    return suspects
