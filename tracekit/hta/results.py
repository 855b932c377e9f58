"""HTA's analyses, by name; each answer is a set of named data frames."""

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pandas as pd
from hta.common.trace import Trace as ParsedTrace
from msgspec import Struct

from tracekit.base.registry import Registry
from tracekit.errors.asking import HtaError
from tracekit.hta import quietly
from tracekit.hta.tables import with_names
from tracekit.hta.traces import ColumnAnalysis

_NO_CHART = {"visualize": False}
Frames = Mapping[str, pd.DataFrame | None]


class Question(Struct, frozen=True):
    """The input of an analysis, with the parameters that some need."""

    hta: ColumnAnalysis
    other: ColumnAnalysis | None = None  # the trace that is compared with it
    operator: str = "aten::"  # whose kernel sequences are counted
    annotation: str = "ProfilerStep"  # the critical path is that of its second instance
    folder: Path | None = None  # for traces on which HTA draws its overlay


_Ask = Callable[[Question], Frames]
ANALYSES = Registry[_Ask]("analyses of HTA")


def _asked(ask: _Ask) -> _Ask:
    ANALYSES.register(ask.__name__.replace("_", "-"), ask, ask)
    return ask


def frames_of(name: str, question: Question) -> dict[str, pd.DataFrame]:
    """The frames of an analysis that are not empty. Raises HtaError if HTA fails."""
    try:
        with quietly():
            given = ANALYSES[name](question)
    except (HtaError, OSError):
        raise
    except Exception as error:  # if a trace lacks something, HTA lets pandas' exceptions through
        raise HtaError(name, f"{type(error).__name__}: {error}" if str(error) else type(error).__name__) from error
    symbols = question.hta.t.symbol_table.sym_table
    return {key: with_names(frame, symbols) for key, frame in given.items() if frame is not None and len(frame)}


@_asked
def temporal_breakdown(question: Question) -> Frames:
    """How long each rank's GPU computes, does something else, or idles."""
    return {"temporal_breakdown": question.hta.get_temporal_breakdown(**_NO_CHART)}


@_asked
def idle_time_breakdown(question: Question) -> Frames:
    """Why each stream idles: host, kernel to kernel, other."""
    times, intervals = question.hta.get_idle_time_breakdown(
        question.hta.ranks, show_idle_interval_stats=True, **_NO_CHART
    )
    return {"idle_time_breakdown": times, "idle_intervals": intervals}


@_asked
def comm_comp_overlap(question: Question) -> Frames:
    """How much of each rank's communication computation hides."""
    return {"comm_comp_overlap": question.hta.get_comm_comp_overlap(**_NO_CHART)}


@_asked
def gpu_kernel_breakdown(question: Question) -> Frames:
    """Kinds of kernels, and the kernels of each kind that take most time."""
    kinds, kernels = question.hta.get_gpu_kernel_breakdown(**_NO_CHART)
    return {"kernel_types": kinds, "kernels": kernels}


@_asked
def gpu_user_annotation_breakdown(question: Question) -> Frames:
    """How long each of your annotations takes, on the GPU and on the host."""
    ask = question.hta.get_gpu_user_annotation_breakdown
    return {
        "annotations_gpu": ask(use_gpu_annotation=True, **_NO_CHART),
        "annotations_host": ask(use_gpu_annotation=False, **_NO_CHART),
    }


@_asked
def cuda_kernel_launch_stats(question: Question) -> Frames:
    """For each launch, the call, the kernel and the time between them."""
    return {"launch_stats": _by_rank(question.hta.get_cuda_kernel_launch_stats(question.hta.ranks, **_NO_CHART))}


@_asked
def aten_op_kernels_and_delay(question: Question) -> Frames:
    """Which kernels each operator launches, and after how long."""
    return {"operator_kernels": _by_rank(question.hta.get_aten_op_kernels_and_delay(question.hta.ranks))}


@_asked
def queue_length(question: Question) -> Frames:
    """How much work is queued on each stream, and how long the queue is full."""
    series = question.hta.get_queue_length_time_series(question.hta.ranks)
    return {
        "queue_length_summary": question.hta.get_queue_length_summary_from_time_series(series),
        "queue_length_full": question.hta.get_time_spent_blocked_on_full_queue(series),
        "queue_length": _by_rank(series),
    }


@_asked
def memory_bandwidth(question: Question) -> Frames:
    """The bandwidth that copies and memsets achieve, GB/s."""
    return {
        "memory_bandwidth_summary": question.hta.get_memory_bw_summary(question.hta.ranks),
        "memory_bandwidth": _by_rank(question.hta.get_memory_bw_time_series(question.hta.ranks)),
    }


@_asked
def critical_path(question: Question) -> Frames:
    """The longest chain of dependent work, in the second step, or in the only one."""
    summaries, edges = {}, {}
    for rank in question.hta.ranks:
        instance = second_on_host(question.hta.t, rank, question.annotation)
        made = question.hta.critical_path_analysis(rank, question.annotation, instance)
        if made is None:
            raise HtaError("critical-path", f"the trace holds no {question.annotation}")
        graph, complete = made
        if not complete:
            raise HtaError("critical-path", "the graph that it makes of the trace has cycles")
        if question.folder is not None:
            question.hta.overlay_critical_path_analysis(rank, graph, str(question.folder))
        path = edges[rank] = graph.get_critical_path_breakdown()
        shares = path.groupby("bound_by")["duration"].sum()
        summaries[rank] = pd.DataFrame({"duration": shares, "share": shares / max(shares.sum(), 1e-9)}).reset_index()
    return {"critical_path_summary": _by_rank(summaries), "critical_path": _by_rank(edges)}


def second_on_host(trace: ParsedTrace, rank: int, annotation: str) -> int:
    """HTA's number of the second instance of an annotation on the host, or of the only one; HTA also counts those on
    the GPU.

    The first step of a recording often lacks events.
    """
    names = trace.symbol_table.sym_table
    rows = trace.get_trace(rank)
    rows = rows[rows["name"].isin([code for code, name in enumerate(names) if annotation in name])]
    on_host = [index for index, cat in enumerate(rows["cat"]) if not names[cat].lower().startswith("gpu_")]
    return [*on_host, 0][min(1, max(len(on_host) - 1, 0))]


@_asked
def cupti_counters(question: Question) -> Frames:
    """Performance counters, kernel by kernel, with the operators around them."""
    counters = question.hta.get_cupti_counter_data_with_operators(question.hta.ranks)
    return {"cupti_counters": _by_rank(dict(zip(question.hta.ranks, counters, strict=False)))}


@_asked
def trace_diff(question: Question) -> Frames:
    """Operators and kernels of one variant compared with those of another: number and duration."""
    if question.other is None:
        raise HtaError("trace-diff", "it compares two variants, and one was given")
    diff = question.hta.compare_traces(question.other)
    return {"trace_diff": diff.reindex(diff["diff_duration"].abs().sort_values(ascending=False, kind="stable").index)}


@_asked
def frequent_patterns(question: Question) -> Frames:
    """Which sequences of kernels an operator launches, and how often."""
    sequences = {}
    for rank in question.hta.ranks:
        with tempfile.TemporaryDirectory(prefix="tracekit-") as nowhere:
            folder = str(question.folder or nowhere)
            sequences[rank] = question.hta.get_frequent_cuda_kernel_sequences(question.operator, folder, rank=rank)
    return {"frequent_patterns": _by_rank(sequences)}


@_asked
def potential_stragglers(question: Question) -> Frames:
    """Which ranks arrive late at the longest collective."""
    return {"potential_stragglers": pd.DataFrame({"rank": question.hta.get_potential_stragglers()})}


def _by_rank(frames: Mapping[int, pd.DataFrame]) -> pd.DataFrame | None:
    """The frames of several ranks below one another, with the rank as the first column."""
    with_ranks = []
    for rank, frame in frames.items():
        with_rank = frame.drop(columns="rank", errors="ignore")
        with_rank.insert(0, "rank", rank)
        with_ranks.append(with_rank)
    return pd.concat(with_ranks, ignore_index=True) if with_ranks else None
