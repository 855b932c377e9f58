"""A subject whose ranks are all read elsewhere, with one rank of each job opened here.

What reads them are processes on this machine, or the workers of a Dask cluster, each of which has the file of its rank.
Both are used in the same way, and turn one trace into columns, or into a sentence that says why they cannot. Traces are
read a few at a time: one that is damaged, or kills its reader, costs only itself. Where only a worker has the trace
that is opened here, it is fetched from there.
"""

import logging
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from tracekit.base.workspace import workspace_anywhere
from tracekit.errors import TracekitError, named
from tracekit.errors.asking import NeedsPackageError
from tracekit.errors.reading import ClusterError, NoSuchFileError, RanksLostError, UnreadableFileError
from tracekit.installed import version
from tracekit.profile import Capture, Member, Subject, Untraced
from tracekit.profile.names import distinct, job_name, job_of, stem
from tracekit.ranks import RankColumns, read_rank
from tracekit.trace.reading.source import is_address, traces_in
from tracekit.trace.storing import cache

Open = Callable[[list[Path]], Subject]
RankWatch = Callable[[int, int], None]  # called with the number of finished traces, and of all traces
_PATIENCE = 10  # seconds for an address to answer
_PIECE = 16 << 20  # bytes of a trace that are fetched at a time
_SECONDS = 2.0  # between two checks whether any reader is left
_DIED = "the process that read it died twice, perhaps because memory ran out"


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
    files: list[list[Path]] = []
    for path in paths:
        try:
            files.append(traces_in(path) if is_folder(path) else [path] if is_address(path) or path.is_file() else [])
        except TracekitError:
            files.append([])
    return version(), files


def _piece(path: Path, offset: int) -> bytes:
    """Runs in a worker: reads a part of a file."""
    with path.open("rb") as file:
        file.seek(offset)
        return file.read(_PIECE)


def open_ranks(
    paths: Sequence[Path],
    readers: Readers,
    open_here: Open,
    *,
    infer_steps: bool = True,
    watch: RankWatch = lambda done, of: None,
) -> Subject:
    """Read every trace by the readers; open the lowest rank of each job by `open_here`, for all other figures.

    A rank that cannot be read, or whose reader dies, becomes a member without a trace. Raises RanksLostError if no rank
    can be read, and whatever `open_here` raises.
    """
    read = read_all(readers.traces(paths), readers, infer_steps=infer_steps, watch=watch)
    lost = [reading for reading in read.values() if isinstance(reading, Lost)]
    # The ranks of each job, the lowest first; the second of two equal ranks is a separate job.
    by_job: dict[object, dict[int, RankColumns]] = {}
    for columns in read.values():
        if isinstance(columns, RankColumns):
            key: object = job_of(Path(columns.trace), columns.world_size)
            if columns.rank in by_job.get(key, {}):
                key = columns.trace
            by_job.setdefault(key, {})[columns.rank] = columns
    if not by_job:
        raise RanksLostError(len(lost), lost[0].why)
    jobs = [[job[rank] for rank in sorted(job)] for job in by_job.values()]
    # The lowest rank of each job that can be answered.
    opening = [next((rank for rank in job if len(rank.steps)), job[0]) for job in jobs]
    first = [Path(rank.trace) for rank in opening]
    names = distinct([job_name(path) if len(job) > 1 else stem(path) for path, job in zip(first, jobs, strict=True)])
    members: list[Member] = []
    for path, name, rank, job in zip(first, names, opening, jobs, strict=True):
        with fetched(path, readers) as file:  # by itself: opened together, traces would be taken for ranks of one job
            (profile,) = open_here([file]).profiles
        captures = tuple(_named_after(capture, path) for capture in profile.captures)
        if len(job) > 1:  # else it may be a file that merges ranks
            captures = tuple(replace(capture, rank=rank.rank) for capture in captures)
        members.append(replace(profile, name=name, captures=captures))
    members += [Untraced(stem(failure.path), "error", failure.why) for failure in lost]
    return Subject(members, ranks={name: job for name, job in zip(names, jobs, strict=True) if len(job) > 1})


@contextmanager
def fetched(path: Path, readers: Readers) -> Iterator[Path]:
    """The path if its file is here, else that of a copy with the same name. Raises TracekitError."""
    if _is_here(path):
        yield path
        return
    with workspace_anywhere(cache.home() / "work") as folder:
        if folder is None:
            raise UnreadableFileError(path, "there is nowhere to store it while it is read")
        copy = folder / path.name
        try:
            with copy.open("wb") as out:
                for piece in readers.pieces(path):
                    out.write(piece)
        except OSError as error:
            raise UnreadableFileError(path, error.strerror or str(error)) from None
        yield copy


def _is_here(path: Path) -> bool:
    return is_address(path) or os.path.exists(path)


def _named_after(capture: Capture, path: Path) -> Capture:
    """A capture that may have been read from a copy, with the path of the original."""
    if capture.attribution is None or capture.path == path:
        return capture
    trace = replace(capture.attribution.trace, path=path)
    return replace(capture, path=path, attribution=replace(capture.attribution, trace=trace))


def read_all(
    paths: Sequence[Path], readers: Readers, *, infer_steps: bool = True, watch: RankWatch = lambda done, of: None
) -> dict[Path, Read]:
    """For each path, its columns, or why there are none. If a reader dies, the traces it may have died of are read
    again, each alone."""
    reading_of: dict[Path, Read] = {}

    def keep(path: Path, read: Read) -> None:
        reading_of[path] = read
        watch(len(reading_of), len(paths))

    for path in _one_pass(paths, readers, readers.width, infer_steps, keep):
        for _ in _one_pass([path], readers, 1, infer_steps, keep):
            keep(path, Lost(path, _DIED))
    return {path: reading_of[path] for path in paths}


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
