"""Kernels of several variants in one table: each name once, absent where it does not run, differences that add up."""

from small import training

from tracekit.profile import open_subject
from tracekit.report import report as make_report


def test_names_are_joined(tmp_path):
    paths = [
        training(tmp_path / "eager.json", kernel_us=30, name="gemm"),
        training(tmp_path / "fast.json", kernel_us=20, name="gemm"),
        training(tmp_path / "other.json", kernel_us=10, name="fused"),
    ]
    (section,) = (each for each in make_report(open_subject(paths)).sections if each.id == "joined_kernels")
    sentences, table = section.blocks
    assert sentences.lines == ("0 of 2 kernels and copies are in all variants; 1 in other alone (10.0 µs a step).",)
    assert table.rows.to_pylist() == [
        {"name": "gemm", "eager_ns": 30e3, "fast_ns": 20e3, "other_ns": None, "Δ fast_ns": -10e3, "Δ other_ns": -30e3},
        {"name": "fused", "eager_ns": None, "fast_ns": None, "other_ns": 10e3, "Δ fast_ns": 0.0, "Δ other_ns": 10e3},
    ]


def test_one_variant_has_nothing_to_join(tmp_path):
    report = make_report(open_subject([training(tmp_path / "eager.json")]))
    assert not [each for each in report.sections if each.id == "joined_kernels"]
