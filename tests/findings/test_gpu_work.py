"""What a busy GPU could do faster: each rule fires on its cause, and on nothing else."""

import json

import pytest
from small import kernel, launch, op, step, write

from tracekit.findings import diagnose
from tracekit.findings.rules.matrix_products import layout_conversions, unaligned_products, without_tensor_cores
from tracekit.findings.rules.memory_traffic import unfused_elementwise
from tracekit.profile import open_subject

GEMM = "ampere_bf16_s16816gemm_bf16_128x64_tn"
SGEMM = "ampere_sgemm_128x64_tn"
ALIGNED = "void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x128_16x5_tn_align4>(int)"
UNALIGNED = "void cutlass::Kernel2<cutlass_75_tensorop_bf16_s1688gemm_bf16_256x128_tn_align1>(int)"
SIMT = "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x64_8x5_nt_align1>(int)"
ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >(int)"


def working(path, *work, major=8):
    """Two steps of consecutive kernels, each given by its operator, name, µs and stream."""
    events = []
    for k in range(2):
        at = 1000.0 * k
        until = at + 10
        for number, (operator, name, length, stream) in enumerate(work):
            events += [
                op(operator, at + number, at + number + 0.9),
                launch(at + number + 0.1, at + number + 0.8, 100 * k + number + 1),
                kernel(name, until, until + length, 100 * k + number + 1) | {"tid": stream},
            ]
            until += length
        events += [launch(at + len(work), until, 0, "cudaDeviceSynchronize"), step(k, at, until)]
    write(path, *events)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"deviceProperties": [{"id": 0, "computeMajor": major}]}))
    return open_subject([path]).profiles[0]


@pytest.mark.parametrize(
    "name", [SGEMM, SIMT, "cudnn_ampere_scudnn_128x64_relu_xregs_large_nn_v1", "magma_sgemmEx_kernel<float>(int)"]
)
def test_products_in_fp32(tmp_path, name):
    profile = working(tmp_path / "a.json", ("aten::mm", name, 600, 7), ("aten::add", ADD, 200, 7))
    (finding,) = without_tensor_cores(profile)
    assert (finding.where.kernel, finding.where.operator) == (name, "aten::mm")
    assert "75.0 % of the GPU's work" in finding.why
    assert "TF32" in finding.advice
    diagnosed = diagnose(profile)
    assert [each.id for each in diagnosed.findings] == ["gpu_bound_gemm", "without_tensor_cores"]
    assert diagnosed.findings[1].claimed_ns == pytest.approx(600_000)
    assert diagnosed.findings[1].cost_ns == pytest.approx(599_000)  # the second launch of a step comes 1 µs later


@pytest.mark.parametrize(
    ("name", "major"),
    [
        (GEMM, 8), (ALIGNED, 8), (UNALIGNED, 8), ("cutlass_tensorop_s1688dgrad_optimized_tf32_128x128_16x4", 8),
        ("volta_s884gemm_fp16_64x64_ldg8_f2f_nn", 7), ("volta_fp16_scudnn_fp16_128x64_relu", 7), (ADD, 8),
        ("maxwell_sgemm_128x64_nn", 6),  # a GPU without tensor cores
    ],
)  # fmt: skip
def test_what_uses_tensor_cores_or_could_not(tmp_path, name, major):
    assert not [*without_tensor_cores(working(tmp_path / "a.json", ("aten::mm", name, 600, 7), major=major))]


def test_a_gpu_whose_tensor_cores_take_half_precision_only(tmp_path):
    (finding,) = without_tensor_cores(
        working(tmp_path / "a.json", ("aten::mm", "volta_sgemm_64x64_nt", 600, 7), major=7)
    )
    assert "Run them in fp16" in finding.advice
    assert "TF32" not in finding.advice


@pytest.mark.parametrize(
    ("name", "on_rocm"),
    [
        ("void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true, (cudnnKernelDataType_t)2>(int)", False),
        ("void nhwcToNchwKernel<__half, __half, float, true, false>(int)", False),
        ("batched_transpose_16x32_half", True),
    ],
)
def test_layouts_that_are_converted(tmp_path, name, on_rocm):
    work = [("aten::cudnn_convolution", name, 100, 7), ("aten::cudnn_convolution", GEMM, 300, 7)]
    (finding,) = layout_conversions(working(tmp_path / "a.json", *work))
    assert finding.headline.startswith("Convolutions convert layouts: ")
    assert "are 25.0 % of the GPU's work" in finding.why.replace("\u00a0", " ")
    assert "torch.channels_last" in finding.do
    assert ("MIOPEN" in finding.do) is on_rocm
    assert not [*layout_conversions(working(tmp_path / "b.json", ("aten::t", "transpose_kernel", 100, 7)))]


def test_operands_that_are_not_aligned(tmp_path):
    (finding,) = unaligned_products(working(tmp_path / "a.json", ("aten::bmm", UNALIGNED, 600, 7)))
    assert (finding.where.kernel, finding.where.operator) == (UNALIGNED, "aten::bmm")


@pytest.mark.parametrize("name", [GEMM, ALIGNED, SIMT, "cutlass_80_tensorop_bf16_s16816gemm_64x64_tn_align16"])
def test_operands_that_are_aligned_or_never_can_be_said_to_be(tmp_path, name):
    assert not [*unaligned_products(working(tmp_path / "a.json", ("aten::bmm", name, 600, 7)))]


def test_chains_of_elementwise_kernels(tmp_path):
    work = [
        ("aten::mm", GEMM, 200, 7),
        ("aten::add", ADD, 50, 7),
        ("aten::mul", ADD, 100, 7),
        ("aten::relu", ADD, 30, 7),
    ]
    profile = working(tmp_path / "a.json", *work, ("aten::mm", GEMM, 200, 7), ("aten::add", ADD, 40, 7))
    (finding,) = unfused_elementwise(profile)
    assert finding.headline.startswith("Elementwise kernels follow one another unfused")
    assert finding.why.startswith("3 a step, in 1 chain")
    costs = {each.id: each.cost_ns for each in diagnose(profile).findings}
    assert costs["unfused_elementwise"] == pytest.approx(80_000)  # without the longest kernel


@pytest.mark.parametrize(
    "work",
    [
        [("aten::add", ADD, 50, 7), ("aten::mm", GEMM, 200, 7), ("aten::mul", ADD, 100, 7)],
        [("triton_poi_fused_add_0", "triton_poi_fused_add_0", 50, 7)] * 3,
        [("aten::add", ADD, 50, 7), ("aten::add", ADD, 50, 9)],
    ],
)
def test_no_chains(tmp_path, work):
    assert not [*unfused_elementwise(working(tmp_path / "a.json", *work))]


def test_nothing_is_said_of_steps_whose_work_is_not_known(tmp_path):
    path = tmp_path / "a.json"
    work = [
        ("aten::mm", SGEMM, 200, 7),
        ("aten::add", ADD, 50, 7),
        ("aten::mul", ADD, 50, 7),
        ("aten::bmm", UNALIGNED, 50, 7),
    ]
    working(path, *work)
    document = json.loads(path.read_text())
    other = [op("aten::mm", 5, 9), launch(6, 8, 999)]  # two ranks in one file: no wall view
    document["traceEvents"] += [each | {"pid": 2, "tid": 2} for each in other]
    path.write_text(json.dumps(document))
    profile = open_subject([path]).profiles[0]
    assert "wall" in profile.attribution.cannot_answer
    for look in (without_tensor_cores, unaligned_products, unfused_elementwise):
        assert not [*look(profile)]
