"""What reads the ranks: processes on this machine, or the workers of a Dask cluster, each of which has the file of its
rank. Both are used in the same way, and turn one trace into columns, or into a sentence that says why they cannot.
"""

import logging
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct

from tracekit.errors import TracekitError, named
from tracekit.errors.asking import NeedsPackageError
from tracekit.errors.reading import ClusterError, NoSuchFileError
from tracekit.installed import version
from tracekit.ranks import RankColumns, read_rank
from tracekit.trace.reading.source import is_address, traces_in

_PATIENCE = 10  # seconds for an address to answer
_PIECE = 16 << 20  # bytes of a trace that are fetched at a time


class Lost(Struct, frozen=True):
    """A rank that could not be read, and why. It is returned, because an exception may not survive pickling."""

    path: Path
    why: str


def read_one(path: Path, infer_steps: bool = True) -> RankColumns | Lost:
    """The columns of a trace, or what is wrong with it, so that the reader can continue with the next."""
    try:
        return read_rank(path, infer_steps=infer_steps, workers=1)
    except (TracekitError, OSError, MemoryError) as error:
        return Lost(path, str(error) or type(error).__name__)


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
        return [trace_path for path in paths for trace_path in (traces_in(path) if is_folder(path) else [path])]

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
    return Cluster(cluster)


def is_folder(path: Path) -> bool:
    """Whether the path is a folder that holds traces."""
    return os.path.isdir(path) and not is_address(path)


class Cluster:
    """A connection to a scheduler; `traces` finds out which workers have which files."""

    def __init__(self, address: str) -> None:
        try:
            import distributed
        except ImportError:
            raise NeedsPackageError("--cluster", "distributed", "dask") from None
        logging.getLogger("distributed").setLevel(logging.CRITICAL)  # lost connections are reported here
        try:
            self._client: Any = distributed.Client(address, timeout=_PATIENCE, set_as_default=False)
        except (OSError, TimeoutError, ValueError, ImportError) as error:
            raise ClusterError(address, "nothing answers there" if isinstance(error, OSError) else str(error)) from None
        self._address = address
        self._having: dict[Path, list[str]] = {}
        self.width = 2 * sum(worker["nthreads"] for worker in self._workers().values())
        if not self.width:
            self._client.close()
            raise ClusterError(address, "it has no workers")

    def traces(self, paths: Sequence[Path]) -> list[Path]:
        """The given paths that the workers have, with a folder replaced by its traces. Raises TracekitError."""
        try:
            answers: dict[str, tuple[str | None, list[list[Path]]]] = self._client.run(traces_there, [*paths])
        except Exception as error:  # a worker without tracekit may raise anything
            raise ClusterError(self._address, f"its workers cannot run tracekit: {error}") from None
        other_versions = {theirs for theirs, _ in answers.values()} - {version()}
        if other_versions:
            raise ClusterError(
                self._address, f"its workers run tracekit {other_versions.pop()}, and this is {version()}"
            )
        files_seen: list[Path] = []
        for index, path in enumerate(paths):
            answers_here = {name: answer[index] for name, (_, answer) in answers.items() if answer[index]}
            if not answers_here:
                raise NoSuchFileError(path)
            for name, files in answers_here.items():
                for file in files:
                    self._having.setdefault(file, []).append(name)
            files_seen += sorted({file for files in answers_here.values() for file in files})
        return files_seen

    def submit(self, path: Path, infer_steps: bool) -> "Future[Read]":
        """Read that trace on a worker that has it. The future raises an exception if workers die while reading it."""
        executor = self._client.get_executor(workers=self._having.get(path), pure=False)
        future: Future[Read] = executor.submit(read_one, path, infer_steps)
        return future

    def pieces(self, path: Path) -> Iterator[bytes]:
        """The content of that file, from a worker that has it. Raises ClusterError."""
        offset, piece = 0, b" "
        while piece:
            reading = self._client.submit(_piece, path, offset, workers=self._having.get(path), pure=False)
            try:
                piece = reading.result()
            except Exception as error:  # a cluster raises its own exceptions when workers die
                raise ClusterError(self._address, f"{named(path)} cannot be fetched: {error}") from None
            offset += len(piece)
            yield piece

    def restart(self) -> None:
        """Nothing to do: the scheduler reassigns a dead worker's work by itself."""

    def why_idle(self) -> str | None:
        """The reason if there is no worker or no scheduler left, else None."""
        if self._client.status != "running":
            return "the cluster no longer answers"
        return None if self._workers() else "the cluster has no workers left"

    def _workers(self) -> dict[str, dict[str, Any]]:
        return dict(self._client.scheduler_info(n_workers=-1)["workers"])

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()


def traces_there(paths: list[Path]) -> tuple[str | None, list[list[Path]]]:
    """Runs in a worker: its version of tracekit, and for each path the traces that it has."""
    return version(), [_traces(path) for path in paths]


def _piece(path: Path, offset: int) -> bytes:
    """Runs in a worker: reads a part of a file."""
    with path.open("rb") as file:
        file.seek(offset)
        return file.read(_PIECE)


def _traces(path: Path) -> list[Path]:
    if is_address(path) or not is_folder(path):
        return [path] if is_address(path) or path.is_file() else []
    try:
        return traces_in(path)
    except TracekitError:
        return []
