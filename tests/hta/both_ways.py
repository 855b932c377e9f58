"""HTA's analyses of a trace, once through our columns and once through HTA's own parser."""

import logging
import tempfile
import warnings
from functools import cache

import numpy as np
import pandas as pd
from hta.common.trace import Trace as ParsedTrace
from hta.configs.env_options import HTAEnvOptions
from hta.trace_analysis import TraceAnalysis
from real import trace_path

from tracekit.hta import trace_analysis
from tracekit.hta.results import second_on_host
from tracekit.profile import open_subject

HTAEnvOptions.instance().set_disable_ns_rounding(True)  # as HTA_DISABLE_NS_ROUNDING=1 does
warnings.simplefilter("ignore")
logging.getLogger("hta").setLevel(logging.CRITICAL)


@cache
def ours(*names):
    """HTA's analysis of our columns; several traces are ranks."""
    (profile,) = open_subject([trace_path(name) for name in names]).profiles
    return trace_analysis(profile)


@cache
def theirs(*names):
    """HTA's analysis of its own parse, with exact times and with the last step."""
    made = TraceAnalysis.__new__(TraceAnalysis)
    made.t = ParsedTrace({rank: str(trace_path(name)) for rank, name in enumerate(names)}, "")
    made.t.load_traces(include_last_profiler_step=True, use_multiprocessing=False)
    return made


def critical_path(hta):
    """How long each kind of work is on the critical path: HTA picks one of several equally long paths arbitrarily."""
    graph, complete = hta.critical_path_analysis(0, "ProfilerStep", second_on_host(hta.t, 0, "ProfilerStep"))
    assert complete
    edges = graph.get_critical_path_breakdown()
    return pd.DataFrame({"duration": [edges["duration"].sum()]})


def patterns(hta):
    with tempfile.TemporaryDirectory() as folder:
        return hta.get_frequent_cuda_kernel_sequences("autograd::engine", folder)


QUIET = {"visualize": False}
ANALYSES = {
    "temporal": lambda hta: hta.get_temporal_breakdown(**QUIET),
    "idle": lambda hta: hta.get_idle_time_breakdown(hta.t.get_ranks(), show_idle_interval_stats=True, **QUIET),
    "overlap": lambda hta: hta.get_comm_comp_overlap(**QUIET),
    "kernels": lambda hta: hta.get_gpu_kernel_breakdown(**QUIET),
    "annotations": lambda hta: hta.get_gpu_user_annotation_breakdown(**QUIET),
    "host annotations": lambda hta: hta.get_gpu_user_annotation_breakdown(use_gpu_annotation=False, **QUIET),
    "annotated kernels": lambda hta: hta.get_gpu_kernels_with_user_annotations(0),
    "launches": lambda hta: hta.get_cuda_kernel_launch_stats(hta.t.get_ranks(), **QUIET),
    "operators": lambda hta: hta.get_aten_op_kernels_and_delay(),
    "queue summary": lambda hta: hta.get_queue_length_summary(hta.t.get_ranks()),
    "full queue": lambda hta: hta.get_time_spent_blocked_on_full_queue(hta.get_queue_length_time_series(), 2),
    "bandwidth": lambda hta: hta.get_memory_bw_time_series(hta.t.get_ranks()),
    "bandwidth summary": lambda hta: hta.get_memory_bw_summary(hta.t.get_ranks()),
    "counters": lambda hta: hta.get_cupti_counter_data_with_operators(),
    "steps": lambda hta: pd.DataFrame({"step": hta.get_profiler_steps()}),
    "stragglers": lambda hta: pd.DataFrame({"rank": hta.get_potential_stragglers()}),
    "patterns": patterns,
    "critical path": critical_path,
}
# What numbers rows or symbols: each way counts them in its own order.
NUMBERING = {"index", "index_correlation", "external_id", "name", "cat", "user_annotation", "level_0"}
NOT_READ = {"python_id", "python_parent_id", "bytes", "wait_on_stream", "wait_on_cuda_event_record_corr_id"}


def frames(answer):
    """The frames of an answer, one after the other; none for an empty answer."""
    if answer is None:
        return []
    if isinstance(answer, pd.DataFrame):
        return [answer]
    parts = answer.values() if isinstance(answer, dict) else answer
    return [frame for part in parts for frame in frames(part)]


def plain(frame):
    """The frame with columns of one level, without numbering, and in an order that both ways share."""
    frame = frame.reset_index()
    frame.columns = ["_".join(map(str, c)) if isinstance(c, tuple) else str(c) for c in frame.columns]
    numbers = {name for name in frame.columns if frame[name].dtype.kind in "iuf"}
    frame = frame.drop(columns=(numbers & NUMBERING) | (NOT_READ & {*frame.columns}))
    for name in frame.columns:
        frame[name] = frame[name].astype(float).round(3) if frame[name].dtype.kind in "iuf" else frame[name].astype(str)
    return frame


def assert_alike(one, other, atol=2e-3):
    """Both have the same rows, except for their order; times agree to 2 ns, because HTA sums floats."""
    one, other = plain(one), plain(other)
    shared = [name for name in one.columns if name in other.columns]
    one, other = (each[shared].sort_values(shared).reset_index(drop=True) for each in (one, other))
    assert len(one) == len(other)
    for name in shared:
        if one[name].dtype.kind == "f" and other[name].dtype.kind == "f":
            assert np.allclose(one[name], other[name], atol=atol, rtol=1e-6, equal_nan=True), name
        else:
            assert one[name].tolist() == other[name].tolist(), name
