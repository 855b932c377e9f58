"""What reads the ranks: processes on this machine, or the workers of a Dask cluster. Both are used in the same way."""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Protocol

from tracekit.errors import NoSuchFileError
from tracekit.fleet.one_rank import Lost, read_one
from tracekit.ranks import RankColumns
from tracekit.trace.reading.inputs import is_address, traces_in

Read = RankColumns | Lost


class Readers(Protocol):
    """An executor that reads traces. Leaving its `with` block stops it."""

    width: int  # how many traces to submit at a time

    def traces(self, paths: Sequence[Path]) -> list[Path]:
        """The given paths, with a folder replaced by its traces. Raises TracekitError."""

    def submit(self, path: Path, infer_steps: bool) -> "Future[Read]":
        """Read that trace. The future raises an exception if its reader dies."""

    def restart(self) -> None:
        """Recover after a reader died; what was submitted before is lost."""

    def pieces(self, path: Path) -> Iterator[bytes]:
        """The content of a file that is not on this machine. Raises TracekitError."""

    def why_idle(self) -> str | None:
        """Why no reader is left, or None while there is one."""

    def __enter__(self) -> "Readers": ...

    def __exit__(self, *_: object) -> None: ...


class Processes:
    """Processes on this machine."""

    def __init__(self, workers: int) -> None:
        self.width = workers
        self._pool = self._started()

    def _started(self) -> ProcessPoolExecutor:
        # A fork would inherit threads of numpy and Arrow in the middle of their work.
        return ProcessPoolExecutor(self.width, mp_context=get_context("spawn"))

    def traces(self, paths: Sequence[Path]) -> list[Path]:
        """The given paths, with a folder replaced by its traces. Raises TracekitError."""
        return [each for path in paths for each in (traces_in(path) if is_folder(path) else [path])]

    def submit(self, path: Path, infer_steps: bool) -> "Future[Read]":
        """Read that trace. The future raises an exception if its process dies."""
        return self._pool.submit(read_one, path, infer_steps)

    def restart(self) -> None:
        """Start a new pool: one in which a process died accepts no more work."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._pool = self._started()

    def pieces(self, path: Path) -> Iterator[bytes]:
        """Not possible: processes only have the files of this machine."""
        raise NoSuchFileError(path)

    def why_idle(self) -> str | None:
        """None, because processes are always restarted."""
        return None

    def __enter__(self) -> "Processes":
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)


def readers(workers: int, cluster: str | None) -> Readers:
    """The cluster if one is named, else that many processes. Raises ClusterError and NeedsPackageError."""
    if cluster is None:
        return Processes(workers)
    from tracekit.fleet.cluster import Cluster

    return Cluster(cluster)


def is_folder(path: Path) -> bool:
    """Whether it is a folder of traces."""
    return os.path.isdir(path) and not is_address(path)
