"""Lines of kernels without stacks, from the graphs and code that torch 2.7 logs (shortened)."""

import pytest
from small import event, op, step, write

from tests.lines.recorded import call, costs_of
from tracekit.compile_log.log import Node, Provenance, calls, nodes_of
from tracekit.engine import attribute
from tracekit.lines.ownership import Ownership
from tracekit.trace import Trace

FILE = "/home/me/mine.py"
TRACED = f"""\
class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[32, 64][64, 1]cpu"):
        l_x_ = L_x_

         # File: {FILE}:2 in forward, code: x = s.a(x).relu()
        linear: "f32[32, 64][64, 1]cpu" = torch._C._nn.linear(l_x_, weight, bias);  l_x_ = None
        x: "f32[32, 64][64, 1]cpu" = linear.relu();  linear = None

         # File: {FILE}:3 in forward, code: y = x.sin() + 1
        sin: "f32[32, 64][64, 1]cpu" = x.sin();  x = None
"""
LOWERED = f"""\
class GraphModule(torch.nn.Module):
    def forward(self, primals_1: "f32[64, 64][64, 1]cpu", primals_2: "f32[64][1]cpu"):
         # File: {FILE}:2 in forward, code: x = s.a(x).relu()
        addmm: "f32[32, 64][64, 1]cpu" = torch.ops.aten.addmm.default(primals_2, primals_3, permute);  permute = None
        relu: "f32[32, 64][64, 1]cpu" = torch.ops.aten.relu.default(addmm)

         # File: {FILE}:3 in forward, code: y = x.sin() + 1
        sin: "f32[32, 64][64, 1]cpu" = torch.ops.aten.sin.default(relu);  relu = None

        # No stacktrace found for following nodes
        full: "f32[][]cpu" = torch.ops.aten.full.default([], 0.0)
        return (sin, addmm)
"""
CPU = """\
# AOT ID: ['0_forward']
aten = torch.ops.aten
cpp_fused_relu_sin_0 = async_compile.cpp_pybinding(['const float*', 'float*'], '''
    extern "C"  void kernel(const float* in_ptr0, float* out_ptr0)
''')

async_compile.wait(globals())

def call(args):
    primals_1, primals_2, primals_3 = args
    args.clear()
    assert_size_stride(primals_1, (64, 64), (64, 1))
    buf0 = empty_strided_cpu((32, 64), (64, 1), torch.float32)
    # Topologically Sorted Source Nodes: [linear], Original ATen: [aten.addmm]
    extern_kernels.addmm(primals_2, primals_3, reinterpret_tensor(primals_1, (64, 64), (1, 64), 0), out=buf0)
    del primals_1
    cpp_fused_relu_sin_0(buf0, buf1)
    # Topologically Sorted Source Nodes: [x, sin], Original ATen: [aten.relu, aten.sort]
    buf2 = torch.ops.aten.sort.stable(buf1, stable=False, dim=0, descending=False)
    return (buf1, )

def benchmark_compiled_module(times=10, repeat=10):
    extern_kernels.mm(None, None)
"""
BACKWARD = CPU.replace("0_forward", "0_backward").replace("[linear]", "[]")
TRITON = """\
# AOT ID: ['0_inference']
# kernel path: /tmp/torchinductor_me/cs/cscm.py
# Topologically Sorted Source Nodes: [x, sin], Original ATen: [aten.relu, aten.sin]
# Source node to ATen node mapping:
#   sin => sin
#   x => relu
# Graph fragment:
#   %relu : [num_users=1] = call_function[target=torch.ops.aten.relu.default](args = (%addmm,), kwargs = {})
#   %sin : [num_users=1] = call_function[target=torch.ops.aten.sin.default](args = (%relu,), kwargs = {})
triton_poi_fused_relu_sin_0 = async_compile.triton('triton_poi_fused_relu_sin_0', '''
import triton
''', device_str='cuda')

def call(args):
    with torch.cuda._DeviceGuard(0):
        torch.cuda.set_device(0)
        stream0 = get_raw_stream(0)
        triton_poi_fused_relu_sin_0.run(buf1, primals_2, 2048, grid=grid(2048), stream=stream0)
    return (buf1, )
"""


def frame(line):
    return f'File "{FILE}", line {line}, in forward'


def test_nodes_have_the_line_before_them():
    assert nodes_of(LOWERED) == {
        "addmm": Node(frame(2), "aten.addmm"),
        "relu": Node(frame(2), "aten.relu"),
        "sin": Node(frame(3), "aten.sin"),
    }
    assert {name: node.frame for name, node in nodes_of(TRACED).items()} == {
        "linear": frame(2),
        "x": frame(2),
        "sin": frame(3),
    }


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (
            CPU,
            [
                ("extern_kernels.addmm:0", [frame(2)]),
                ("cpp_fused_relu_sin_0:1", [frame(2), frame(3)]),
                ("torch.ops.aten.sort.stable:2", [frame(2), frame(3)]),
            ],
        ),
        (TRITON, [("triton_poi_fused_relu_sin_0:0", [frame(2), frame(3)])]),
        ("no code", []),
    ],
)
def test_calls_of_generated_code(code, expected):
    assert calls(code, nodes_of(TRACED), nodes_of(LOWERED)) == expected


def test_an_operator_that_names_no_source_is_for_the_lines_that_call_it():
    assert calls(BACKWARD, {}, nodes_of(LOWERED))[0] == ("extern_kernels.addmm:0", [frame(2)])


def logged(*records):
    provenance = Provenance()
    for kind, payload in records:
        artifact = {"artifact": {"name": kind}} if kind.startswith("fx_") else {kind: {}}
        provenance.take(artifact, payload, "0/0", 1)
    return provenance.graphs


@pytest.fixture
def graphs():
    return logged(
        ("dynamo_output_graph", TRACED),
        ("inductor_post_grad_graph", LOWERED),
        ("inductor_output_code", CPU),
        ("fx_graph_cache_miss", '{"key": "fone"}'),
        ("inductor_post_grad_graph", LOWERED),
        ("inductor_output_code", BACKWARD),
        ("fx_graph_cache_miss", '{"key": "ftwo"}'),
    )


def test_the_log_of_a_version_without_stacks(graphs):
    assert [(graph.key, graph.compile, graph.backward, graph.by_code) for graph in graphs] == [
        ("fone", "0/0", False, True),
        ("ftwo", "0/0", True, True),
    ]


def test_kernels_without_events_count_for_all_lines_of_their_graph_and_that_is_an_estimate(tmp_path, graphs):
    """A forward region of 40 µs and a backward one of 30 µs, in each of which an operator takes 10 µs."""
    trace = write(
        tmp_path / "trace.json",
        step(0, 0, 100),
        call("mine.py(1): work", 0, 100),
        op("Torch-Compiled Region: 0/0", 10, 60),
        op("CompiledFunction", 15, 55) | {"args": {"Sequence number": 7}},
        op("aten::addmm", 20, 30),
        call("torch/autograd/graph.py(1): _engine_run_backward", 60, 95),
        event("cpu_op", "CompiledFunctionBackward", 62, 92) | {"args": {"Sequence number": 7, "Fwd thread id": 1}},
        op("aten::addmm", 70, 80),
    )
    ownership = Ownership.of(attribute(Trace.load(trace)), None, graphs=graphs)
    total = costs_of(ownership, "cpu_compute")
    compiled = {lines: ns for lines, ns in total.items() if lines != (1,)}
    assert compiled == {(2,): 20_000, (2, 3): 30_000 + 20_000}
    assert ownership.costs["wall"].divided_ns.sum() == 50_000
    assert (ownership.compiled.calls, ownership.compiled.by_code) == (2, 2)
    assert Ownership.of(attribute(Trace.load(trace)), None).compiled.calls == 0  # it may belong to another backend
