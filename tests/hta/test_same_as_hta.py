"""Every analysis of HTA on our columns and on its own parse, with real traces: equal wherever HTA is right."""

import pytest
from hta.trace_diff import TraceDiff
from real import trace_path
from small import event, launch, op, write

from tests.hta.both_ways import ANALYSES, ParsedTrace, TraceAnalysis, assert_alike, frames, ours, theirs
from tracekit.hta import trace_analysis
from tracekit.profile import open_subject

EXACT = ("leimao_eager_rtx5080", "leimao_cudagraph_manual_rtx5080", "tracelens_owlv2_h100_dataloader")
WHOLE_US = ("hta_diff_control", "hta_gpu_user_annotation", "hta_alexnet_cuda_sync")
OF_COMPILED = ("luatil_compile_rtx3060", "luatil_compile_cudagraph_rtx3060")
RANKS = tuple(f"param_dlrm_v100_rank{rank}" for rank in range(4))
TRACES = [(name,) for name in (*EXACT, *WHOLE_US, *OF_COMPILED, "hta_triton_example", "compile_cold_cpu")] + [RANKS]

# Where HTA is wrong, and why.
WRONG = {
    # HTA takes `index_correlation` 0, "linked to nothing", for event 0 and counts what is late after that as host wait.
    (RANKS, "idle"),
    # A GPU annotation has the name of a step and lasts into the next one: HTA takes these rows for steps as well.
    *(((name,), "annotated kernels") for name in OF_COMPILED),
    # A launch and another kernel's start in the same µs: which one HTA counts first is an accident of sorting.
    (("hta_diff_control",), "queue summary"),
    # HTA truncates sums to whole µs; its own sum of floats is 113,982.999… µs, which makes it 1 µs less.
    (("luatil_compile_cudagraph_rtx3060",), "kernels"),
}
LARGE = ("hta_diff_control", "tracelens_owlv2_h100_dataloader")
SLOW = ("patterns", "operators", "critical path")  # HTA takes minutes for them on a large trace


@pytest.mark.traces
@pytest.mark.parametrize("analysis", ANALYSES)
@pytest.mark.parametrize("names", TRACES, ids=lambda names: names[0])
def test_through_our_columns_an_analysis_says_what_hta_says(names, analysis):
    if (names, analysis) in WRONG:
        pytest.skip("HTA is wrong here; the reason stands beside the list")
    if names[0] in LARGE and analysis in SLOW:
        pytest.skip("HTA takes minutes")
    ask = ANALYSES[analysis]
    try:
        expected = frames(ask(theirs(*names)))
    except Exception as error:
        with pytest.raises(type(error)):  # what HTA cannot answer from its own parse, it cannot answer from our columns
            ask(ours(*names))
        return
    answer = frames(ask(ours(*names)))
    assert len(answer) == len(expected)
    for one, other in zip(answer, expected, strict=True):
        assert_alike(one, other)


@pytest.mark.traces
def test_what_waits_for_cuda_events_is_on_the_critical_path():
    """As in HTA's own test: the second forward pass, in which the host waits for an event of the GPU."""
    annotation = "[param|pytorch.model.alex_net|0|0|0|measure|forward]"
    found = []
    for hta in (ours("hta_alexnet_cuda_sync"), theirs("hta_alexnet_cuda_sync")):
        graph, complete = hta.critical_path_analysis(0, annotation, 1)
        assert complete
        edges = graph.get_critical_path_breakdown()
        found.append(edges.groupby(["bound_by", "type"])["duration"].agg(["sum", "count"]).to_dict("index"))
    assert found[0] == found[1]
    assert sum(each["count"] for (_, kind), each in found[0].items() if "sync" in kind) == 1


@pytest.mark.traces
def test_two_traces_are_compared_as_hta_compares_them():
    names = ("leimao_eager_rtx5080", "leimao_cudagraph_manual_rtx5080")
    expected = TraceDiff.compare_traces(*(ParsedTrace({0: str(trace_path(name))}, "") for name in names))
    assert_alike(ours(names[0]).compare_traces(ours(names[1])), expected)


def test_performance_counters(tmp_path):
    """CUPTI's ranges, as the profiler writes them: one for each launch, with counters as arguments."""
    events = []
    for nth, name in enumerate(("gemm", "relu", "softmax")):
        at = 1000 + 100 * nth
        events += [
            op("aten::linear", at, at + 90),
            op(f"aten::{name}", at + 10, at + 80),
            launch(at + 20, at + 30, nth + 1),
            event("cuda_profiler_range", name, at + 40, at + 60, tid=0, pid=0, smsp__inst_executed=float(100 + nth)),
        ]
    path = write(tmp_path / "counted.json", *events)
    (profile,) = open_subject([path]).profiles
    parsed = TraceAnalysis.__new__(TraceAnalysis)
    parsed.t = ParsedTrace({0: str(path)}, "")
    parsed.t.load_traces(include_last_profiler_step=True, use_multiprocessing=False)
    frames = [hta.get_cupti_counter_data_with_operators()[0] for hta in (trace_analysis(profile), parsed)]
    for frame in frames:
        assert frame["smsp__inst_executed"].tolist() == [100, 101, 102]
        assert frame["op_stack"].tolist() == [["aten::linear", f"aten::{name}"] for name in ("gemm", "relu", "softmax")]
