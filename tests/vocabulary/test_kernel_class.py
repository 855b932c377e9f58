"""Kernels of real traces and of public libraries, each with the class that a person assigned to it."""

from pathlib import Path

import pytest

from tracekit.vocabulary.kernel_class import UNKNOWN, kernel_class, without_parameters

NAMES = [
    line.split("\t") for line in (Path(__file__).parent / "data" / "kernel_names.tsv").read_text().splitlines() if line
]


def test_names_are_classed_as_people_class_them() -> None:
    wrong = [(name, expected, kernel_class(name)) for expected, name in NAMES if kernel_class(name) != expected]
    assert not wrong
    assert len(NAMES) > 400


@pytest.mark.parametrize(
    ("operator", "name", "expected"),
    [
        ("aten::addmm", "void at::native::reduce_kernel<512, 1>(float)", "matmul"),
        ("aten::cudnn_convolution", "volta_sgemm_128x64_nn", "convolution"),
        ("aten::_scaled_dot_product_efficient_attention", "void at::native::reduce_kernel<128>(int)", "attention"),
        ("aten::index_add_", "void at::native::vectorized_elementwise_kernel<4>(int)", "scatter/gather"),
        ("aten::native_layer_norm", "some_vendor_kernel", "normalisation"),
        ("aten::_sparse_mm", "void gemm(int)", "sparse"),
        ("aten::_fused_adam_", "void anything(int)", "optimizer"),
        ("aten::copy_", "Memcpy HtoD (Pinned -> Device)", "copy"),
        ("my::operator", "ampere_sgemm_64x64_nt", "matmul"),
        (None, "a name that says nothing", UNKNOWN),
    ],
)
def test_the_operator_decides_before_the_name(operator: str | None, name: str, expected: str) -> None:
    assert kernel_class(name, operator) == expected


def test_types_of_parameters_do_not_count() -> None:
    assert without_parameters("void f<g(int)::h>(gemm::Params)") == "void f<g(int)::h>"
    assert without_parameters("(anonymous namespace)::copy(conv)") == "copy"
    assert kernel_class("void fill(cublasGemmParams)") == "elementwise"
