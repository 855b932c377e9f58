"""What shapes and occupancy say about a busy GPU: bandwidth, bytes that fusing saves, sizes of products, empty GPUs."""

import json

import msgspec
import numpy as np
import pytest
from real import trace_names, trace_path
from small import BEFORE, kernel, launch, op, step, write

from tracekit.findings import diagnose
from tracekit.findings.bandwidth import Traffic, achieved, traffic
from tracekit.findings.rules.matrix_products import unaligned_products, unfused_attention, without_tensor_cores
from tracekit.findings.rules.memory_traffic import low_occupancy, memory_bandwidth, unfused_elementwise
from tracekit.findings.verdict import module_shares
from tracekit.profile import memory_bandwidth as peaks
from tracekit.profile import open_subject
from tracekit.trace import Trace
from tracekit.trace.rereading import Arguments, arguments

A100 = "NVIDIA A100-SXM4-40GB"
ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >(int)"
SGEMM = "ampere_sgemm_128x64_tn"
UNALIGNED = "void cutlass::Kernel2<cutlass_75_tensorop_bf16_s1688gemm_bf16_256x128_tn_align1>(int)"
REDUCE = "void at::native::reduce_kernel<512, 1>(int)"
MB = 1 << 20


def working(path, *work, device=A100, major=8):
    """Two steps of consecutive kernels, each given by its operator and inputs, name, µs and occupancy."""
    events = []
    for k in range(2):
        at = 10_000.0 * k
        until = at + 10
        for number, (operator, inputs, name, length, occupancy) in enumerate(work):
            made = op(operator, at + number, at + number + 0.9)
            shapes = {"Input Dims": inputs, "Input type": ["float"] * len(inputs or [])} if inputs is not None else {}
            ran = kernel(name, until, until + length, 100 * k + number + 1)
            ran["args"] |= occupancy
            events += [made | {"args": shapes}, launch(at + number + 0.1, at + number + 0.8, 100 * k + number + 1), ran]
            until += length
        events += [launch(at + len(work), until, 0, "cudaDeviceSynchronize"), step(k, at, until)]
    write(path, *BEFORE, *events)
    document = json.loads(path.read_text()) | {"deviceProperties": [{"id": 0, "name": device, "computeMajor": major}]}
    path.write_text(json.dumps(document))
    return open_subject([path]).profiles[0]


def attending(*between, softmax="aten::_softmax", after="aten::bmm"):
    """A product, what is between it and the softmax, and the product after that: 100 µs each."""
    products = [[8, 100, 64], [8, 64, 100]]
    operators = ["aten::bmm", *between, softmax, after]
    return [(each, products if "mm" in each else None, f"{each[6:]}_kernel", 100, {}) for each in operators]


def test_attention_that_is_spelled_out_is_one_finding(tmp_path):
    profile = working(tmp_path / "a.json", adding(1, 100), *attending("aten::div", "aten::add"), adding(1, 300))
    (finding,) = unfused_attention(profile)
    assert finding.headline.startswith("Attention is not fused, most of all ")
    assert finding.why.startswith("55.6 % of the GPU's work is attention: 1 softmax a step")  # 500 of 900
    assert "operands 8×100×64 and 8×64×100" in finding.title
    assert "scaled_dot_product_attention" in finding.advice
    assert finding.claim.total() == 2 * 500_000


def test_its_backward_pass_counts_too(tmp_path):
    work = [*attending()[:1], *attending("aten::mul", softmax="aten::_softmax_backward_data"), *attending()[:1]]
    (finding,) = unfused_attention(working(tmp_path / "a.json", *work))
    assert finding.claim.total() == 2 * 600_000


@pytest.mark.parametrize(
    "work",
    [
        attending(softmax="aten::_log_softmax"),
        attending(after="aten::addmm"),  # a softmax that pools nodes, as in DiffPool
        attending("aten::native_layer_norm"),
        attending(*["aten::add"] * 9),
        attending()[1:],
    ],
)
def test_a_softmax_elsewhere_is_no_attention(tmp_path, work):
    assert not [*unfused_attention(working(tmp_path / "a.json", *work))]


def test_where_torch_itself_cannot_fuse_the_advice_is_to_find_out_why(tmp_path):
    path = tmp_path / "a.json"
    working(path, *attending())
    document = json.loads(path.read_text())
    document["traceEvents"] += [
        op("aten::_scaled_dot_product_attention_math", 10_000.0 * k - 0.5, 10_000.0 * k + 5) for k in range(2)
    ]
    path.write_text(json.dumps(document))
    (finding,) = unfused_attention(open_subject([path]).profiles[0])
    assert "which scaled_dot_product_attention does not fuse here" in finding.title
    assert "sdpa_kernel" in finding.advice


def test_products_of_attention_are_not_to_be_padded(tmp_path):
    work = [(operator, inputs, UNALIGNED if inputs else name, *rest) for operator, inputs, name, *rest in attending()]
    assert not [*unaligned_products(working(tmp_path / "a.json", *work))]
    assert [*unaligned_products(working(tmp_path / "b.json", *work[:1]))]


def test_a_real_detector_spends_most_of_its_work_in_attention():
    found = diagnose(open_subject([trace_path("tracelens_owlv2_h100_dataloader")]).profiles[0])
    ids = [each.id for each in found.findings]
    assert ids[:2] == ["dataloader_bound", "unfused_attention"]
    assert "180 softmaxes a step" in found.findings[1].title
    assert "unaligned_products" not in ids


def adding(megabytes, length, **more):
    """Two tensors of this size are added, which moves three times as many bytes."""
    numbers = megabytes * MB // 4
    return ("aten::add", [[numbers], [numbers]], ADD, length, more)


def full(share, blocks):
    return {"est. achieved occupancy %": share, "blocks per SM": blocks}


def test_elementwise_kernels_that_move_little_for_their_time(tmp_path):
    profile = working(tmp_path / "a.json", adding(100, 1000))  # 300 MiB in 1 ms, of 1,555 GB in a second
    (finding,) = memory_bandwidth(profile)
    share = 300 * MB / 1e-3 / 1.555e12
    assert f"293 GiB/s, {share:.1%}".replace("%", " %") in finding.title
    assert finding.where.operator == "aten::add"
    (cost,) = (each.cost_ns for each in diagnose(profile).all_findings if each.id == "memory_bandwidth")
    assert cost == pytest.approx(1e6 * (1 - share), rel=1e-4)


@pytest.mark.parametrize(
    ("work", "device"),
    [
        (adding(100, 250), A100),  # 1.26 TB/s
        (adding(1, 1000), A100),  # may be in a cache
        (("aten::add", None, ADD, 1000, {}), A100),  # no shapes
        (adding(100, 1000), "NVIDIA GeForce RTX 3060 Laptop GPU"),  # slower than the card of that name
        (("triton_poi_fused_add_0", [[25 * MB]] * 2, "triton_poi_fused_add_0", 1000, {}), A100),  # it may do anything
    ],
)
def test_what_moves_enough_or_cannot_be_told(tmp_path, work, device):
    assert not [*memory_bandwidth(working(tmp_path / "a.json", work, device=device))]


@pytest.mark.parametrize(
    ("operator", "inputs", "moved"),
    [
        ("aten::add", [[100], [100]], 1200),
        ("aten::add", [[100], [100], [], [100]], 1200),  # alpha, and out
        ("aten::mul", [[100], [100], [100]], 1200),
        ("aten::clamp_min", [[100], [], [100]], 800),
        ("aten::exp", [[100], [100]], 800),
        ("aten::addcmul", [[100], [100], [100]], 1600),
        ("aten::where", [[100], [], [100]], 1200),  # the number is what is chosen elsewhere
    ],
)
def test_where_a_result_is_written_to_is_no_input(operator, inputs, moved):
    types = ["float" if shape else "Scalar" for shape in inputs]
    given = msgspec.json.decode(msgspec.json.encode({"Input Dims": inputs, "Input type": types}), type=Arguments)
    assert traffic(operator, given).bytes == moved


def test_more_than_the_peak_is_logged_and_left_out(tmp_path, caplog):
    work = adding(100, 250), adding(100, 100)  # 1.26 and 3.15 TB/s
    with caplog.at_level("WARNING", "tracekit"):
        sentence = diagnose(working(tmp_path / "a.json", *work)).verdict.sentence
    assert f"80.9 % of the memory bandwidth of {A100}" in sentence
    assert f"too many bytes are counted, for more than {A100} has moves them: {ADD}" in caplog.text


@pytest.mark.parametrize("name", trace_names() or ["absent"])
def test_no_kernel_of_a_real_trace_is_faster_than_its_memory(name, caplog):
    for profile in open_subject([trace_path(name)]).profiles:
        achieved(profile)
    assert not caplog.records


def test_the_verdict_says_what_is_moved_and_what_is_not_known(tmp_path):
    sentence = diagnose(working(tmp_path / "a.json", adding(100, 250))).verdict.sentence
    assert f"large elementwise kernels move 1.14 TiB/s, 80.9 % of the memory bandwidth of {A100}" in sentence
    unknown = diagnose(working(tmp_path / "b.json", adding(100, 250), device="Some GPU")).verdict.sentence
    assert "1.14 TiB/s; the memory bandwidth of this GPU is not known" in unknown


@pytest.mark.parametrize(
    ("name", "gigabytes"),
    [
        (A100, 1555), ("NVIDIA A100-SXM4-80GB", 2039), ("NVIDIA A100 80GB PCIe", 1935), ("Tesla V100-DGXS-32GB", 900),
        ("NVIDIA H100 80GB HBM3", 3350), ("NVIDIA H100 PCIe", 2039), ("NVIDIA H200", 4800), ("Tesla T4", 320),
        ("NVIDIA GeForce RTX 3060", 360), ("NVIDIA GeForce RTX 3060 Ti", 448), ("NVIDIA L40S", 864), ("NVIDIA L4", 300),
        ("AMD Instinct MI300X", 5300), ("AMD Instinct MI250X / MI250", 1638),
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", None),
        ("A GPU of tomorrow", None),
    ],
)  # fmt: skip
def test_what_data_sheets_say(tmp_path, name, gigabytes):
    peak = peaks.memory_bandwidth(working(tmp_path / "a.json", adding(1, 10), device=name).trace)
    assert peak == ((name, gigabytes * 1e9) if gigabytes else None)


def test_gpus_that_differ_have_no_bandwidth_in_common(tmp_path):
    path = write(tmp_path / "a.json", step(0, 0, 1))
    document = json.loads(path.read_text()) | {"deviceProperties": [{"name": A100}, {"name": "Tesla T4"}]}
    path.write_text(json.dumps(document))
    assert peaks.memory_bandwidth(Trace.load(path)) is None


@pytest.mark.parametrize(
    ("name", "dims", "types", "strides", "expected"),
    [
        ("aten::add", [[8, 4], [8, 4]], ["float", "float"], None, Traffic(256, 128)),
        ("aten::mul", [[8, 4], [4]], ["c10::BFloat16"] * 2, None, Traffic(72, 64)),  # one is broadcast
        ("aten::mul", [[8, 4], [8, 4]], ["float"] * 2, [[4, 1], [0, 1]], Traffic(144, 128)),  # or was expanded before
        ("aten::gt", [[8, 4], [8, 4]], ["float", "float"], None, Traffic(256, 32)),
        ("aten::add_", [[8, 4], [8, 4]], ["float", "float"], None, Traffic(256, 128)),
        ("aten::fill_", [[8, 4], []], ["float", "Scalar"], None, Traffic(0, 128)),
        ("aten::relu", [[8, 4]], ["c10::Half"], None, Traffic(64, 64)),
        ("aten::relu", [[8, 4]], ["a type of tomorrow"], None, None),
        ("aten::_foreach_add_", [[8], [8]], ["TensorList"], None, None),
        ("aten::add", [[8, 4], [3]], ["float", "float"], None, None),  # shapes that do not match
    ],
)
def test_bytes_of_an_operator(tmp_path, name, dims, types, strides, expected):
    given = {"Input Dims": dims, "Input type": types} | ({"Input Strides": strides} if strides else {})
    trace = Trace.load(write(tmp_path / "a.json", op(name, 0, 1) | {"args": given}))
    (recorded,) = arguments(trace, np.zeros(1, np.int64)).values()
    assert traffic(name, recorded) == expected


def test_what_fusing_a_chain_keeps_from_memory(tmp_path):
    profile = working(tmp_path / "a.json", adding(100, 300), adding(40, 120), adding(100, 300), adding(4, 500))
    (finding,) = unfused_elementwise(profile)
    assert "writing to memory and reading back 480 MiB a step" in finding.title  # for the first three, what they write
    no_shapes = ("aten::add", None, ADD, 90, {})
    (finding,) = unfused_elementwise(working(tmp_path / "b.json", adding(100, 300), no_shapes, adding(100, 300)))
    assert "reading back at least 200 MiB a step" in finding.title
    (finding,) = unfused_elementwise(working(tmp_path / "c.json", no_shapes, no_shapes))
    assert "keep" not in finding.title


def test_the_sizes_of_products(tmp_path):
    large = ("aten::addmm", [[512], [1024, 256], [256, 512]], SGEMM, 500, {})
    small = ("aten::mm", [[10, 20], [20, 30]], SGEMM, 50, {})
    (finding,) = without_tensor_cores(working(tmp_path / "a.json", small, large, small))
    assert finding.headline.startswith("fp32 without tensor cores: sgemm")
    assert "(operands 1024×256 and 256×512)" in finding.why
    odd = ("aten::bmm", [[16, 5185, 64], [16, 64, 5185]], UNALIGNED, 500, {})
    (finding,) = unaligned_products(working(tmp_path / "b.json", odd))
    assert finding.headline.startswith("Matrix products with unaligned operands")
    assert "(operands 16×5185×64 and 16×64×5185)" in finding.why
    into = ("aten::mm", [[1024, 2048], [2048, 512], [1024, 512]], SGEMM, 500, {})  # compiled code says where to write
    added = ("aten::addmm", [[1024, 512], [1024, 256], [256, 512]], SGEMM, 400, {})
    (finding,) = without_tensor_cores(working(tmp_path / "d.json", into, added))
    assert "(operands 1024×2048 and 2048×512)" in finding.why
    (finding,) = without_tensor_cores(working(tmp_path / "e.json", added))
    assert "(operands 1024×256 and 256×512)" in finding.why
    compiled = ("CompiledFunction", [[3, 4], [5, 6]], SGEMM, 500, {})  # its inputs are not the product's
    (finding,) = without_tensor_cores(working(tmp_path / "c.json", compiled))
    assert "×" not in finding.title


@pytest.mark.parametrize(
    ("device", "first"), [("NVIDIA GeForce RTX 3060", "Run under torch.autocast with bfloat16"), (A100, "Allow TF32")]
)
def test_on_a_geforce_tf32_is_no_faster_than_fp32_at_its_peak(tmp_path, device, first):
    product = ("aten::mm", [[10, 20], [20, 30]], SGEMM, 500, {})
    (finding,) = without_tensor_cores(working(tmp_path / "a.json", product, device=device))
    assert finding.do.startswith(first)
    assert ("its peak there is no higher than that of fp32" in finding.do) is ("GeForce" in device)


def test_kernels_that_leave_the_gpu_empty(tmp_path):
    work = [("aten::sum", None, REDUCE, 300, full(3, 0.1)), ("aten::add", None, ADD, 600, full(95, 16))]
    (finding,) = low_occupancy(working(tmp_path / "a.json", *work))
    assert finding.headline.startswith("Low occupancy: ")
    assert (
        "Kernels that fill 3.0 % of the GPU are 33.3 % of its work. All of them (1 a step) have fewer blocks"
        in finding.why
    )
    assert "larger batches" in finding.advice
    assert finding.where.operator == "aten::sum"
    (finding,) = low_occupancy(working(tmp_path / "b.json", ("my::own", None, "mine", 300, full(5, 40))))
    assert "Registers" in finding.advice


@pytest.mark.parametrize(
    "work",
    [
        ("aten::add", None, ADD, 300, full(95, 16)),
        ("aten::mm", None, "ampere_bf16_s16816gemm_bf16_128x64_tn", 300, full(8, 0.9)),  # tensor cores need few warps
        ("aten::sum", None, REDUCE, 5, full(3, 0.1)),  # a tiny kernel
        ("nccl:all_reduce", None, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(int)", 300, full(1, 0.1)),
        ("aten::sum", None, REDUCE, 300, {}),  # not recorded
        ("aten::sum", None, REDUCE, 300, full(-9352, 0.1)),  # no share
    ],
)
def test_kernels_that_fill_it_or_of_which_nothing_is_known(tmp_path, work):
    assert not [*low_occupancy(working(tmp_path / "a.json", work))]


def test_without_stacks_no_module_is_named(tmp_path):
    assert module_shares(working(tmp_path / "a.json", adding(1, 10))) == {}
