"""One pass on several ranks: a process for each, which connect as under torchrun."""

import os
import re
import socket
from collections.abc import Sequence
from math import inf
from pathlib import Path

from msgspec.structs import replace

from tracekit.capture.job import Job, PassResult
from tracekit.run import RankTraces

# What a rank says that fails because another one is gone: gloo, NCCL, the store, and a rank that waits for a decision.
_FOLLOWS = re.compile(
    r"connection (?:was )?(?:likely )?(?:reset|closed|aborted|refused)|broken pipe|timed out|remote process"
    r"|DistNetworkError|NCCL (?:error|communicator was aborted)|^FirstRankEndedError",
    re.IGNORECASE,
)


def rank_jobs(job: Job, folder: Path) -> list[tuple[Job, Path]]:
    """The job of each rank, and its scratch folder; the first rank uses that of the pass."""
    jobs = []
    port = _free_port() if job.ranks > 1 else 0
    for rank in range(job.ranks):
        scratch = rank_folder(folder, rank)
        traces = job.folder if rank == 0 else str(Path(job.folder) / f"rank{rank}")
        scratch.mkdir(exist_ok=True)
        if job.stage == "profile":
            Path(traces).mkdir(exist_ok=True)
        rank_job = replace(job, rank=rank, scratch=str(scratch), folder=traces, meeting=str(folder), port=port)
        jobs.append((rank_job, scratch))
    for pattern in ("agreed-*.json", "left-*"):
        for earlier in folder.glob(pattern):
            earlier.unlink()
    return jobs


def rank_folder(folder: Path, rank: int) -> Path:
    """The scratch folder of that rank."""
    return folder if rank == 0 else folder / f"rank{rank}"


def rank_log(log: Path, rank: int) -> Path:
    """The file for that rank's output."""
    return log if rank == 0 else log.with_name(f"{log.stem}-rank{rank}{log.suffix}")


def torchrun_environment(job: Job) -> dict[str, str]:
    """The variables that torchrun sets; none for a single process.

    As under torchrun, each process uses one thread unless configured otherwise.
    """
    if job.ranks == 1:
        return {}
    return {
        "RANK": str(job.rank),
        "LOCAL_RANK": str(job.rank),
        "WORLD_SIZE": str(job.ranks),
        "LOCAL_WORLD_SIZE": str(job.ranks),
        "GROUP_RANK": "0",
        "GROUP_WORLD_SIZE": "1",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(job.port),
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"),
    }


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


def combined(results: Sequence[tuple[PassResult, float]]) -> PassResult:
    """The first rank's result, with the traces of the others; if some failed, the failure that came first.

    This needs to know when each was written, or the rank was last seen without one: infinity for a rank that was killed
    in the end. A rank that fails breaks the connections of the others, so that they fail, too: sometimes before anybody
    sees that it is gone, so a broken connection is the first failure only if there is no other.
    """
    first = results[0][0]
    other_ranks = [
        RankTraces(rank=rank, traces=result.traces.below(f"rank{rank}"))
        for rank, (result, _) in enumerate(results)
        if rank
    ]
    first = replace(first, ranks=other_ranks)
    failed = [
        (ended_s == inf, _FOLLOWS.search(result.error or "") is not None, ended_s, rank)
        for rank, (result, ended_s) in enumerate(results)
        if result.outcome != "ok"
    ]
    if not failed:
        return first
    rank = min(failed)[-1]
    result = results[rank][0]
    return replace(first, outcome=result.outcome, error=f"rank {rank}: {result.error}", traceback=result.traceback)
