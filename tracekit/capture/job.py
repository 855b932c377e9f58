"""The parent's request to a child process, and the child's result: two JSON files. A pass on several ranks is a job for
each, which connect as under torchrun; an audit returns rows, the lines of the user's that would block, crash or break a
graph.
"""

import os
import re
import socket
from collections.abc import Sequence
from math import inf
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import msgspec
from msgspec.structs import replace

from tracekit.base.atomic import put
from tracekit.run import (
    WINDOWS,
    Activity,
    Effective,
    GraphSizes,
    Ledger,
    Measured,
    Memory,
    Outcome,
    Profiled,
    RankTraces,
    Requested,
    StageTime,
    Traces,
    Training,
    Turn,
    Window,
)
from tracekit.run.settings import Settings

Kind: TypeAlias = Literal["sync", "copy", "mixed", "break"]
KINDS: tuple[Kind, ...] = get_args(Kind)
RESULT = "result.json"  # in the scratch folder: what a pass returns
SO_FAR = "so_far.json"  # in the scratch folder: a preliminary result
Stage = Literal["inspect", "measure", "live", "profile", "check", "train", "audit"]
# What a rank says that fails because another one is gone: gloo, NCCL, the store, and a rank that waits for a decision.
_CAUSED_BY_ANOTHER_RANK = re.compile(
    r"connection (?:was )?(?:likely )?(?:reset|closed|aborted|refused)|broken pipe|timed out|remote process"
    r"|DistNetworkError|NCCL (?:error|communicator was aborted)|^FirstRankEndedError",
    re.IGNORECASE,
)


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the user's, and what would happen there on a GPU."""

    kind: Kind
    operator: str  # as the profiler names it
    file: str
    line: int
    function: str
    per_step: float  # the mean over all counted steps; 0: seen only outside of them
    count: int = 0  # how often, in all counted steps
    in_steps: int = 0  # in how many of these it happened
    loading: bool = False  # it happened while a DataLoader made a batch in this process
    source: str = ""  # the line itself
    via: str | None = None  # the position in a library that its call had reached
    why: str = ""


class Audit(msgspec.Struct, frozen=True, kw_only=True):
    """All rows, and the number of steps that they cover."""

    steps: int = 0
    rows: list[Row] = []
    losses: list[float] = []  # of every step of a recipe, including the first one
    notes: list[str] = []  # what this run leaves open
    used: bool = True  # whether any tensor was put on the GPU
    failure: str | None = None  # why it ended early


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the files that a pass wrote, by their paths."""

    discarded: list[str] = []  # with the view in which they were written
    undone: list[str] = []  # because there was no view
    kept: list[str] = []  # data that the program prepared and read before its first step
    failed: dict[str, str] = {}  # those that could not be put back, and why
    changed: list[str] = []  # by something that no journal notes
    no_view: str = ""  # why there was none; empty if there was one, or if the pass wrote in place


class Job(Settings, frozen=True, kw_only=True):
    """One pass of one variant: the settings, and what this pass is about."""

    stage: Stage
    round: int = 0  # of the unprofiled passes: the first has empty caches, later ones are shorter
    program: str  # the path of a recipe or a script, or the name of a module
    label: str = ""  # "gcn_cora compiled", for the trace's header
    requested: Requested = Requested(compile=False)
    device: str = "cpu"
    windows: tuple[Window, ...] = WINDOWS  # to trace
    available: int | None = None  # the number of steps that the script has, if it ended early in an earlier pass
    period: int = 1  # steps after which their durations repeat, if earlier passes showed it: windows are whole ones
    folder: str = ""  # where the traces go
    scratch: str = ""  # the folder for the results and the journal of a script's files; empty if no parent waits
    caches: str = ""  # the folder of the compiler's caches; "" is the scratch folder
    headers: str = ""  # the folder for precompiled headers, which all passes of a variant share; "" is a temporary one
    began_ns: int = 0  # unix ns, when its process was started; 0 if nobody noted it
    journal: str = ""  # the folder of the journal of what a program does to files
    temporary: str = ""  # the folder for temporary files; "" is the scratch folder
    viewed: bool = False  # the pass runs in a view of the file system, so no file needs a backup
    rank: int = 0  # of several
    port: int = 0  # on which the first rank listens
    meeting: str = ""  # the folder in which ranks agree
    rounded: bool = False  # round sums differently, to see how far losses move


class PassResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a pass; only the fields of its stage are set."""

    outcome: Outcome = "ok"
    error: str | None = None  # one line
    traceback: str = ""  # the recipe's own, without tracekit's frames
    activities: dict[Activity, float] = {}  # what its process did, s
    spent: StageTime | None = None  # the same, as the capture saw it
    notes: list[str] = []  # what the recipe said with ctx.note
    # inspect
    params: dict[str, Any] = {}
    variants: dict[str, dict[str, Any]] = {}
    environment: dict[str, Any] = {}
    devices: list[str] = []
    accelerator: str | None = None  # what PyTorch would train on, measurable or not
    why_no_gpu: str | None = None
    backends: list[str] = []  # that torch.compile knows
    has_setup: bool = False
    ended: int | None = None  # after how many steps the script ended
    boundary: str = ""  # where a script's steps end: a Boundary's name
    step: str = ""  # what a step of a script is, in words
    no_steps: bool = False  # no variant has any step, so running it again would find none either
    refused: bool = False  # before its first step, the script exited as one does that does not accept its arguments
    # measure
    measured: Measured | None = None
    memory: Memory = Memory()
    gpu: dict[str, Any] = {}
    # live: the same, and
    turns: list[Turn] = []
    no_turns: str = ""  # why it cannot take turns
    # profile
    profiled: Profiled | None = None
    traces: Traces = Traces()
    ranks: list[RankTraces] = []  # the traces of the ranks after the first
    ledger: Ledger = Ledger()
    effective: Effective = Effective()
    written: Written = Written()
    # measure: of the timed steps; profile: of all steps
    graphs: GraphSizes | None = None
    # check
    losses: list[float | None] = []
    loss_drift: float | None = None
    gradients: list[float | None] = []  # the norm of all gradients at each step of an optimizer
    gradient_drift: float | None = None
    metrics: dict[str, float | None] = {}
    # train
    training: Training | None = None
    # audit
    audit: Audit = Audit()


def store_so_far(job: Job, result: PassResult) -> None:
    """Store what the pass has measured so far where its parent finds it, so that it survives any end of the process,
    in place of what it had measured before; does nothing in a process of the user's, which has no parent."""
    if job.scratch:
        put(Path(job.scratch, SO_FAR), msgspec.json.encode(result, enc_hook=repr))


def has_something(result: PassResult) -> bool:
    """Whether the pass has any useful result, however it ended."""
    return result.measured is not None or result.traces != Traces()


def rank_jobs(job: Job, folder: Path) -> list[tuple[Job, Path]]:
    """The job of each rank, and its scratch folder; the first rank uses that of the pass."""
    jobs, port = [], 0
    if job.ranks > 1:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
    for rank in range(job.ranks):
        scratch = folder if rank == 0 else folder / f"rank{rank}"
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


def combined(results: Sequence[tuple[PassResult, float]]) -> PassResult:
    """The first rank's result, with the traces of the others; if some failed, the failure that came first.

    This needs to know when each was written, or the rank was last seen without one: infinity for a rank that was killed
    in the end. A rank that fails breaks the connections of the others, so that they fail, too: sometimes before anybody
    sees that it is gone, so a broken connection is the first failure only if there is no other.
    """
    first = results[0][0]
    other_ranks = [
        RankTraces(rank=rank, traces=result.traces.moved_under(f"rank{rank}"))
        for rank, (result, _) in enumerate(results)
        if rank
    ]
    first = replace(first, ranks=other_ranks)
    failed = [
        (ended_s == inf, _CAUSED_BY_ANOTHER_RANK.search(result.error or "") is not None, ended_s, rank)
        for rank, (result, ended_s) in enumerate(results)
        if result.outcome != "ok"
    ]
    if not failed:
        return first
    rank = min(failed)[-1]
    result = results[rank][0]
    return replace(first, outcome=result.outcome, error=f"rank {rank}: {result.error}", traceback=result.traceback)
