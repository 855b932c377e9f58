"""Kernels by names that people use: short, and still distinct."""

from pathlib import Path

import pytest

from tracekit.vocabulary.kernel_names import distinct_short_names, kernel_in_prose, short_kernel

NATIVE = "void at::native::"
LAMBDAS = (
    "(at::TensorIteratorBase&)::{lambda()#1}::operator()() const::{lambda()#4}::operator()() const::{lambda(float)#1}"
)


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("## Call CompiledFxGraph fubzrs5qb4wkyk7 ##", "compiled graph fubzrs5q"),
        ("## forward ##", "forward"),
        ("## of 1 ## and 2", "## of 1 ## and 2"),
        (
            f"{NATIVE}vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, Array<char*, 3> >"
            "(int, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3>)",
            "elementwise add<float>",
        ),
        (
            f"{NATIVE}elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<at::native::BinaryFunctor<"
            "c10::BFloat16, c10::BFloat16, c10::BFloat16, at::native::binary_internal::DivFunctor<c10::BFloat16> > >"
            "(at::TensorIteratorBase&)::{lambda(int)#1}>(int)",
            "elementwise div<bf16>",
        ),
        (
            f"{NATIVE}vectorized_elementwise_kernel<4, at::native::sqrt_kernel_cuda{LAMBDAS}>(int)",
            "elementwise sqrt<float>",
        ),
        (
            f"{NATIVE}reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::func_wrapper_t<float, "
            "at::native::sum_functor<float, float, float>::operator()(at::TensorIterator&)::{lambda(float, float)#1}>, "
            "unsigned int, float, 4> >(at::native::ReduceOp<float>)",
            "reduce sum<float>",
        ),
        (
            "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_64x64_64x6_tn_align8>"
            "(cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_64x64_64x6_tn_align8::Params)",
            "gemm bf16 64x64 64x6 tn align8 relu (cutlass)",
        ),
        ("ampere_sgemm_128x128_tn", "sgemm 128x128 tn (ampere)"),
        ("volta_scudnn_128x64_relu_medium_nn_v1", "conv 128x64 relu medium nn (volta)"),
        ("triton_poi_fused_add_mul_relu_3", "triton add_mul_relu"),
        ("Memcpy HtoD (Pageable -> Device)", "Memcpy HtoD (Pageable -> Device)"),
        ("void cub::DeviceScanInitKernel<cub::ScanTileState<int, true> >(int)", "DeviceScanInitKernel<int> (cub)"),
        ("ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)", "ncclDevKernel_Generic"),
        ("my_kernel", "my"),
        ("", ""),
        ("<<<((", "<<<(("),
    ],
)
def test_short(name, short):
    assert short_kernel(name) == short


def test_what_differs_comes_back_where_two_would_read_alike():
    names = [f"triton_poi_fused_add_{number}" for number in (0, 7)]
    assert distinct_short_names(names) == ["triton add · 0", "triton add · 7"]
    vectors = [f"{NATIVE}vectorized_elementwise_kernel<{n}, at::native::FillFunctor<float> >(int)" for n in (4, 8)]
    assert distinct_short_names([*vectors, vectors[0]]) == [f"elementwise fill<float> · {n}" for n in (4, 8, 4)]


def test_every_known_name_is_told_apart_and_most_are_short():
    listed = (Path(__file__).parent / "data" / "kernel_names.tsv").read_text().splitlines()
    names = sorted({line.split("\t")[1] for line in listed if line and not line.startswith("#")})
    assert len(names) > 300
    shown = distinct_short_names(names)
    assert len(set(shown)) == len(names)
    assert sum(len(each) <= 60 for each in shown) >= 0.9 * len(names)


def test_no_sentence_is_longer_for_a_long_name():
    name = "split_embedding_backward_codegen_rowwise_adagrad_unweighted_kernel_cta_per_row_1<float, 2ul>(int)"
    assert kernel_in_prose(name) == "split_embedding_backward_code…ed_kernel_cta_per_row_1<float>"
