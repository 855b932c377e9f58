"""A comparison of different work says so in its second sentence, and no other comparison does."""

import json

import pytest
from real import trace_path
from small import kernel, launch, op, step, write

from tracekit.profile import open_subject
from tracekit.report import report
from tracekit.report.sections.headline import headline


def working(folder, name, *work, device="NVIDIA A100-SXM4-40GB"):
    """A step of consecutive kernels of 100 µs: operators with the sizes of their inputs and their type."""
    events = [step(0, 0, 10 + 100 * len(work))]
    for number, (operator, inputs, kind) in enumerate(work):
        made = op(operator, number, number + 0.9) | {"args": {"Input Dims": inputs, "Input type": [kind] * len(inputs)}}
        events += [
            made,
            launch(number + 0.1, number + 0.8, number + 1),
            kernel(f"kernel of {operator}", 10 + 100 * number, 110 + 100 * number, number + 1),
        ]
    path = write(folder / f"{name}.json", *events)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"deviceProperties": [{"id": 0, "name": device}]}))
    return path


def layers(width, kind="float", batch=64):
    """Three linear layers."""
    return [("aten::mm", [[batch, width * n], [width * n, width * (n + 1)]], kind) for n in (1, 2, 3)]


CONVOLUTIONS = [("aten::convolution", [[8, 3, 9, 9], [16, 3, 3, 3]], "float")] * 2
ADDITIONS = [("aten::add", [[100, 100]] * 2, "float")] * 4


def second_sentence(*paths):
    (said,) = headline(report(open_subject([*paths])))
    return said.partition(". ")[2]


@pytest.mark.parametrize(
    ("ours", "theirs", "said"),
    [
        (CONVOLUTIONS, layers(8), "This is hardly a comparison: 100.0 % of b's work is convolutions, and a has none"),
        (layers(8), layers(7), "This is hardly a comparison: no operand of their matrix products and convolutions"),
        (layers(8, "c10::BFloat16"), layers(8), "They compute with different types: b multiplies BFloat16, a float."),
        (layers(8, batch=128), layers(8), ""),
        (layers(8) + ADDITIONS, layers(8), ""),  # as where one side is compiled
        (ADDITIONS, layers(8)[:1] + ADDITIONS * 2, ""),  # 11.1 % products
        ([("aten::_flash_attention_forward", [[8, 8, 8]] * 3, "float")], [("aten::bmm", [[9, 9, 9]], "float")], ""),
    ],
)
def test_different_work_is_no_comparison(tmp_path, ours, theirs, said):
    paths = working(tmp_path, "a", *theirs), working(tmp_path, "b", *ours)
    assert second_sentence(*paths).startswith(said)
    assert bool(second_sentence(*paths)) == bool(said)


def test_the_same_work_on_another_device_is_told(tmp_path):
    paths = working(tmp_path, "a", *layers(8)), working(tmp_path, "b", *layers(8), device="NVIDIA H100")
    assert second_sentence(*paths) == "They ran on different devices: b on NVIDIA H100, a on NVIDIA A100-SXM4-40GB."


def test_a_gpu_is_not_compared_with_a_cpu():
    paths = [trace_path(name) for name in ("leimao_eager_rtx5080", "dtu_resnet18_cpu")]
    assert second_sentence(*paths).startswith("This is hardly a comparison: one computes on a CPU, the other on a GPU.")


@pytest.mark.parametrize(
    "pair",
    [
        ("leimao_eager_rtx5080", "leimao_cudagraph_manual_rtx5080"),
        ("luatil_compile_rtx3060", "luatil_compile_cudagraph_rtx3060"),
        ("param_dlrm_v100_rank0", "param_dlrm_v100_rank1"),
    ],
)
def test_the_same_model_run_in_two_ways_is_a_comparison(pair):
    said = " ".join(headline(report(open_subject([trace_path(name) for name in pair]))))
    assert "hardly a comparison" not in said
    assert "different" not in said
