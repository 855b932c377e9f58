"""The lines of the kernels and operators of a compiled graph, run one by one and replayed as a CUDA graph."""

import numpy as np
import pytest
from real import trace_path
from small import event, kernel, launch, op, step, write

from tests.lines.owner_twin import adds_up
from tests.lines.recorded import FILE, call, costs_of, with_lines
from tracekit.engine import attribute
from tracekit.lines.graph_calls import GraphCall, graph_calls, lines_of_operators, lines_of_replayed
from tracekit.lines.ownership import Ownership
from tracekit.trace import Trace
from tracekit.vocabulary.lines_file import Graph

A, B, C, D = "abcd"


def generated(name, *lines):
    return GraphCall(name, lines)


def operator(name, *lines):
    return GraphCall(f"extern_kernels.{name}", lines, name)


GRAPH = [
    operator("mm", A),
    generated("fused_0", A, B),
    operator("mm", B),
    operator("addmm", C),
    generated("fused_1", D),
]


def test_kernels_by_name_operators_by_order():
    names = ["aten::mm", "graph_0_fused_0", "aten::mm", "aten::addmm", "graph_0_fused_1"]
    assert lines_of_operators(names, GRAPH) == [(A,), (A, B), (B,), (C,), (D,)]


def test_what_no_call_stands_for_goes_with_the_one_before():
    names = ["aten::empty", "aten::mm", "aten::empty", "fused_0", "aten::as_strided", "aten::addmm"]
    assert lines_of_operators(names, GRAPH) == [(), (A,), (A,), (A, B), (A, B), (C,)]


def test_an_operator_that_left_no_event_does_not_shift_the_others():
    assert lines_of_operators(["fused_0", "aten::addmm", "fused_1"], GRAPH) == [(A, B), (C,), (D,)]


def test_a_kernel_that_is_called_twice_takes_its_calls_in_turn():
    graph = [generated("fused_0", A), operator("mm", B), generated("fused_0", C)]
    assert lines_of_operators(["fused_0", "aten::mm", "fused_0"], graph) == [(A,), (B,), (C,)]
    assert lines_of_replayed(["fused_0", "sgemm", "fused_0"], np.ones(3, bool), graph) == [(A,), (B,), (C,)]


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("extern_kernels.mm:1", "aten::mm"),
        ("torch.ops.aten.sort.default:2", "aten::sort"),
        ("aten.index_put_:3", "aten::index_put_"),
        ("torch.ops.torch_sparse.spmm_sum.default:4", "torch_sparse::spmm_sum"),
        ("planted.wait.default:5", "planted::wait"),
    ],
)
def test_operators_of_any_library_are_known(label, name):
    graphs = graph_calls(None, [Graph("key", "0/0", [(label, [f'File "{FILE}", line 3, in f'])])])
    happened = lines_of_operators([name, "other::op"], graphs["key"].calls)
    assert [[line.line for line in lines] for lines in happened] == [[3], [3]]


def test_replayed_kernels_share_the_calls_between_generated_ones():
    assert lines_of_replayed(["sgemm", "fused_0", "sgemm", "gemv", "fused_1"], np.ones(5, bool), GRAPH) == [
        (A,),
        (A, B),
        (B,),  # two kernels, two calls
        (C,),
        (D,),
    ]


def test_as_a_group_where_they_are_not_one_to_one():
    names = ["sgemm", "fused_0", "splitk", "reduce", "gemv", "fused_1", "after"]
    lines = lines_of_replayed(names, np.ones(7, bool), GRAPH)
    assert lines == [(A,), (A, B), (B, C), (B, C), (B, C), (D,), (D,)]


def test_a_fill_is_no_kernel_of_a_call():
    lines = lines_of_replayed(["fused_0", "Memset", "sgemm", "gemv"], np.array([True, False, True, True]), GRAPH[:4])
    assert lines == [(A, B), (B, C), (B,), (C,)]


def stack(line):
    return f'File "{FILE}", line {line}, in forward\n    ...'


def recorded(path, name="cudaGraphLaunch"):
    """A step that replays a graph or launches its kernels one by one: 10 µs of line 2, 20 of 2 and 3, and 30 of 4."""
    region = "## Call CompiledFxGraph fkey ##"
    correlations = (1, 1, 1) if name == "cudaGraphLaunch" else (1, 2, 3)
    launches = [launch(20 + at, 20.5 + at, number, name) for at, number in enumerate(dict.fromkeys(correlations))]
    ends = ((30, 40, "sgemm"), (40, 60, "triton_fused_0"), (60, 90, "sgemm"))
    kernels = [kernel(which, low, high, at) for (low, high, which), at in zip(ends, correlations, strict=True)]
    operators = [] if len(launches) == 1 else [op("aten::mm", 19.5, 20.8), op("aten::addmm", 21.8, 22.8)]
    trace = write(
        path,
        step(0, 0, 100),
        call("mine.py(1): work", 5, 95),
        call("<built-in method compiled>", 10, 28),
        op(region, 12, 26),
        *operators,
        *launches,
        *kernels,
        event("cuda_runtime", "cudaDeviceSynchronize", 95, 96, correlation=9),
    )
    graph = Graph(
        "fkey",
        "0/0",
        [
            ("extern_kernels.mm:1", [stack(2)]),
            ("triton_fused_0:2", [stack(2), stack(3)]),
            ("extern_kernels.addmm:3", [stack(4)]),
        ],
    )
    with_lines(trace, {10: 5}, graphs=[graph])
    return Ownership.of(attribute(Trace.load(trace)), None)


def test_a_buffer_belongs_to_the_lines_whose_kernel_fills_it(tmp_path):
    ownership = recorded(tmp_path / "trace.json", "cudaLaunchKernel")
    begin = int(ownership.attribution.trace.steps.issued[0])
    track = ownership.attribution.trace.threads.main
    moments = begin + 1000 * np.array(
        [13, 21, 25, 50]
    )  # before mm; before addmm; after all kernels; outside of the graph
    tracks = np.full(4, track)
    groups = [
        ownership.owners.groups[ownership.owners.rows[each].group] for each in ownership.of_buffers(tracks, moments)
    ]
    lines = [tuple(each.line for each in group) for group in groups]
    plain = [ownership.owners.groups[ownership.owners.rows[each].group] for each in ownership.at(tracks, moments)]
    assert lines[0] == (2,)
    assert lines[2:] == [tuple(each.line for each in group) for group in plain[2:]]
    assert tuple(each.line for each in plain[0]) != (2,)


@pytest.mark.parametrize("name", ["cudaGraphLaunch", "cudaLaunchKernel"])
def test_kernels_of_a_trace_are_for_the_lines_that_were_fused(tmp_path, name):
    ownership = recorded(tmp_path / "trace.json", name)
    assert costs_of(ownership, "gpu_compute") == {(2,): 10_000, (2, 3): 20_000, (4,): 30_000}
    adds_up(ownership)


@pytest.mark.traces
def test_a_real_trace_of_replayed_graphs_adds_up():
    """Two graphs of a transformer, forward and backward, replayed in each of five steps."""
    trace = Trace.load(trace_path("luatil_compile_cudagraph_rtx3060"))
    names = (trace.names[code] for code in trace.name_codes[trace.roles.gpu].tolist())
    triton = [*dict.fromkeys(name for name in names if name.startswith("triton_"))]
    graphs = [
        Graph(name.split()[3], "0/0", [(f"{kernel}:{at}", [stack(at + 1)]) for at, kernel in enumerate(triton)])
        for name in trace.names
        if name.startswith("## Call CompiledFxGraph")
    ]
    ownership = Ownership.of(attribute(trace), None, graphs=graphs)
    adds_up(ownership)
    assert {line for lines in costs_of(ownership, "gpu_compute") for line in lines} == {*range(1, len(triton) + 1)}
    calls = trace.links.launch(np.flatnonzero(trace.roles.gpu))
    launched_alone = ~trace.roles.graph_launch[calls]
    lasted = (trace.end_ns - trace.ts_ns)[trace.roles.gpu]
    assert 0 < costs_of(ownership, "gpu_compute")[()] <= lasted[launched_alone].sum()  # the optimizer's
