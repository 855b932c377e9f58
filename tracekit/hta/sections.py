"""The sections that HTA adds to a report on request: critical path, overlap, idle time, queue length and how GPU
time divides, which is computed exactly.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pandas as pd
import pyarrow as pa
from msgspec import Struct

from tracekit.base.intervals import Bools, Union
from tracekit.base.units import duration, many
from tracekit.errors.asking import HtaError
from tracekit.hta import quietly, trace_analysis
from tracekit.hta.results import Question, frames_of
from tracekit.hta.tables import as_table
from tracekit.hta.traces import ColumnAnalysis, is_event_of_hta
from tracekit.profile import Profile
from tracekit.report.blocks import Block, Sentences, Table
from tracekit.report.model import Report
from tracekit.report.section import Contents, of_variant, unregister
from tracekit.trace import Trace
from tracekit.trace.roles import KERNEL
from tracekit.trace.schema import column, values

_US = 1000  # ns
_REAL = pa.float64()
GPU_TIME = pa.schema(
    [
        column("rank", pa.int64(), "rank of the job", role="identity"),
        column("what", pa.string(), "idle, compute, or the hidden share of communication"),
        column("here_ns", _REAL, "according to tracekit", "ns"),
        column("hta_ns", _REAL, "according to HTA, from the same columns", "ns"),
        column("hta_alone_ns", _REAL, "according to HTA by default: whole µs, without the last step", "ns"),
        column("because", pa.string(), "why HTA's number differs although the columns are the same"),
    ]
)
OVERLAP = pa.schema(
    [
        column("rank", pa.int64(), "rank of the job", role="identity"),
        column("here", _REAL, "share of its communication that computation overlaps", "share"),
        column("hta", _REAL, "the same according to HTA", "share"),
        column("because", pa.string(), "why HTA's number differs"),
    ]
)
PATH = pa.schema(
    [
        column("name", pa.string(), "operator or kernel", role="name"),
        column("path_ns", _REAL, "time on the critical path", "ns"),
        column("pieces", pa.int64(), "number of pieces on the critical path"),
    ]
)
_KINDS = {"idle": "idle_time(us)", "compute": "compute_time(us)"}


@contextmanager
def asked_for() -> Iterator[None]:
    """A context in which reports have these sections."""
    answers = _Answers()
    made: dict[str, tuple[str, Callable[[_Answers, Profile], Contents | None]]] = {
        "hta_critical_path": ("Critical path, by HTA", _critical_path),
        "hta_gpu_time": ("Idle time of the GPU, by HTA", _gpu_time),
        "hta_overlap": ("Overlap of communication, by HTA", _overlap),
        "hta_queue_length": ("Queue length, by HTA", _queue_length),
    }
    for rank, (name, (title, ask)) in enumerate(made.items()):
        of_variant(name, title, rank=800 + rank)(answers.by(ask))
    try:
        yield
    finally:
        for name in made:
            unregister(name)


class _Answers:
    """HTA's analysis of each variant, made once for all sections."""

    def __init__(self) -> None:
        self._made: dict[
            int, tuple[Profile, ColumnAnalysis]
        ] = {}  # by the identity of a profile, which stays while here

    def by(self, ask: "Callable[[_Answers, Profile], Contents | None]") -> Callable[[Report, Profile], Contents | None]:
        """A question as reports ask it."""
        return lambda report, profile: ask(self, profile)

    def exact(self, profile: Profile) -> ColumnAnalysis:
        """The analysis of that variant with exact times and the last step."""
        if id(profile) not in self._made:
            with quietly():
                self._made[id(profile)] = profile, trace_analysis(profile)
        return self._made[id(profile)][1]

    def frames(self, name: str, profile: Profile) -> "dict[str, pd.DataFrame] | Contents":
        """The frames that HTA answers with; where it fails, or has nothing to say, a section that says so."""
        if profile.trace.device != "gpu":
            return Contents((Sentences(("HTA is about GPUs, and this trace has none.",)),), status="absent")
        try:
            frames = frames_of(name, Question(self.exact(profile)))
        except HtaError as error:
            return Contents((Sentences((str(error),)),), status="unanswered")
        return frames or Contents((Sentences((f"HTA has no answer for {name}.",)),), status="absent")

    def ranks(self, profile: Profile) -> dict[int, Profile]:
        """A profile for each rank."""
        return profile.per_rank or {self.exact(profile).ranks[0]: profile}


def _critical_path(answers: _Answers, profile: Profile) -> Contents | None:
    """What bounds the longest chain of work, and the operators and kernels on it."""
    frames = answers.frames("critical-path", profile)
    if isinstance(frames, Contents):
        return frames
    parts: list[dict[Any, Any]] = frames["critical_path_summary"].to_dict("records")
    parts = sorted((part for part in parts if part["duration"] > 0), key=lambda part: -float(part["duration"]))
    total_ns = sum(float(part["duration"]) for part in parts) * _US
    bounds = ", ".join(f"{str(part['bound_by']).replace('_', ' ')} {float(part['share']):.0%}" for part in parts)
    by_name: dict[str, list[float]] = {}
    for edge in frames["critical_path"].to_dict("records"):
        if edge["duration"] > 0:
            by_name.setdefault(str(edge["s_name"]), []).append(float(edge["duration"]) * _US)
    rows = [{"name": name, "path_ns": sum(table), "pieces": len(table)} for name, table in by_name.items()]
    rows.sort(key=lambda row: -float(str(row["path_ns"])))
    sentence = f"The longest chain of work in the second step takes {duration(round(total_ns))}: {bounds}."
    return Contents((Sentences((sentence,)), Table("hta_critical_path", pa.Table.from_pylist(rows, PATH))))


def _gpu_time(answers: _Answers, profile: Profile) -> Contents | None:
    """Idle and computing time of each rank: ours, HTA's, and HTA's by default."""
    frames = answers.frames("temporal-breakdown", profile)
    if isinstance(frames, Contents):
        return frames
    exact = _of_ranks(frames["temporal_breakdown"])
    with quietly():
        alone = trace_analysis(profile, rounded=True, include_last_profiler_step=False)
    try:
        default = _of_ranks(frames_of("temporal-breakdown", Question(alone))["temporal_breakdown"])
    except HtaError:  # HTA may fail because of rounding
        default = {}
    rows: list[dict[str, Any]] = []
    for rank, rank_profile in answers.ranks(profile).items():
        ours = gpu_time(rank_profile.trace)
        our_times = {"idle": ours.idle_ns, "compute": ours.compute_ns}
        for kind, name in _KINDS.items():
            theirs = float(exact[rank][name]) * _US
            rows.append(
                {
                    "rank": rank,
                    "what": kind,
                    "here_ns": float(our_times[kind]),
                    "hta_ns": theirs,
                    "hta_alone_ns": float(default[rank][name]) * _US if rank in default else None,
                    "because": _why(rank_profile, ours) if abs(theirs - our_times[kind]) > 1 else None,
                }
            )
    first = rows[0]
    sentence = f"The GPU idles for {duration(round(first['here_ns']))} of {duration(gpu_time(profile.trace).span_ns)}"
    if first["hta_alone_ns"] is not None and abs(first["hta_alone_ns"] - first["here_ns"]) > 1:
        default_ns = round(first["hta_alone_ns"])
        sentence += f"; HTA by default gives {duration(default_ns)}: it rounds to µs and leaves out the last step"
    return Contents((Sentences((f"{sentence}.",)), Table("hta_gpu_time", pa.Table.from_pylist(rows, GPU_TIME))))


def _overlap(answers: _Answers, profile: Profile) -> Contents | None:
    """The share of communication that computation overlaps, by rank."""
    ranks = answers.ranks(profile)
    ours = {rank: gpu_time(rank_profile.trace) for rank, rank_profile in ranks.items()}
    if all(rank_profile.overlap is None for rank_profile in ours.values()):
        return None
    frames = answers.frames("comm-comp-overlap", profile)
    if isinstance(frames, Contents):
        return frames
    theirs = _of_ranks(frames["comm_comp_overlap"])
    rows = []
    for rank, rank_profile in ours.items():
        hta = float(theirs[rank]["comp_comm_overlap_pctg"]) / 100
        is_same = rank_profile.overlap is not None and abs(rank_profile.overlap - hta) < 1e-4
        because = None if is_same else _why(ranks[rank], rank_profile)
        rows.append({"rank": rank, "here": rank_profile.overlap, "hta": hta, "because": because})
    return Contents((Table("hta_overlap", pa.Table.from_pylist(rows, OVERLAP)),))


def _queue_length(answers: _Answers, profile: Profile) -> Contents | None:
    """How much work is queued on each stream."""
    frames = answers.frames("queue-length", profile)
    if isinstance(frames, Contents):
        return frames
    if "queue_length_summary" not in frames:
        return None
    longest: dict[Any, Any] = frames["queue_length_summary"]["queue_length"]["max"].to_dict()
    rank, stream = max(longest, key=lambda key: float(longest[key]))
    most = f"{longest[rank, stream]:,.0f} pieces of work are queued, on stream {stream} of rank {rank}."
    summary = Table("hta_queue_length", as_table(frames["queue_length_summary"]))
    blocks: list[Block] = [Sentences((f"At most {most}",)), summary]
    if "queue_length_full" in frames:
        blocks.append(Table("hta_queue_full", as_table(frames["queue_length_full"])))
    return Contents(tuple(blocks))


def _of_ranks(frame: pd.DataFrame) -> dict[int, dict[Any, Any]]:
    return {int(row["rank"]): row for row in frame.to_dict("records")}


class GpuTime(Struct, frozen=True):
    """The GPU time of one trace, from the first GPU activity to the end of the last, ns."""

    span_ns: int
    compute_ns: int  # kernels other than communication
    busy_ns: int
    communication_ns: int
    hidden_ns: int  # communication while those kernels run

    @property
    def idle_ns(self) -> int:
        """The time in which nothing runs."""
        return self.span_ns - self.busy_ns

    @property
    def overlap(self) -> float | None:
        """The share of communication that computation overlaps; None without communication."""
        return self.hidden_ns / self.communication_ns if self.communication_ns else None


def _why(profile: Profile, ours: GpuTime) -> str:
    """Why HTA's number differs, as far as that is known."""
    number, length = taken_for_kernels(profile.trace)
    if number:
        return f"it takes {many(number, 'host event')} with a stream for kernels ({duration(length)})"
    if ours.overlap is not None:
        return "it recognises communication only by the names nccl and hccl"
    return "the reason is unknown"


def gpu_time(trace: Trace) -> GpuTime:
    """The GPU time of all GPU activities of a trace, whatever step they belong to."""
    roles = trace.roles
    if not roles.gpu.any():
        return GpuTime(0, 0, 0, 0, 0)

    def union(mask: Bools) -> Union:
        return Union.of(trace.ts_ns[mask], trace.end_ns[mask])

    compute = union((roles.kind == KERNEL) & ~roles.communication)
    communication = union(roles.communication)
    return GpuTime(
        span_ns=int(trace.end_ns[roles.gpu].max() - trace.ts_ns[roles.gpu].min()),
        compute_ns=compute.total(),
        busy_ns=union(roles.gpu).total(),
        communication_ns=communication.total(),
        hidden_ns=communication.total() - communication.minus(compute).total(),
    )


def taken_for_kernels(trace: Trace) -> tuple[int, int]:
    """Events with a stream that are not GPU activities, which HTA counts as kernels: their number and duration, ns."""
    is_no_kernel = (values(trace.events["stream"], null=-1) >= 0) & ~trace.roles.gpu & is_event_of_hta(trace)
    return int(is_no_kernel.sum()), int(trace.dur_ns[is_no_kernel].sum())
