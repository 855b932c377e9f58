"""Operators that compute on a CPU, and what may make them faster."""

import pytest
from msgspec.structs import replace
from small import BEFORE, event, kernel, launch, op, step, write

from tracekit.findings import diagnose
from tracekit.profile import open_subject
from tracekit.run import Memory, Requested, Run, Variant, now


def advice(path, *events):
    profile = open_subject([write(path, *BEFORE, step(0, 0, 100), *events)]).profiles[0]
    (finding,) = (each for each in diagnose(profile).all_findings if each.id == "cpu_compute")
    return finding.advice


def product(*types, name="aten::mm"):
    return event("cpu_op", name, 10, 90, **({"Input type": [*types]} if types else {}))


@pytest.mark.parametrize(
    ("events", "said"),
    [
        ([product("float", "float")], "Try bfloat16 under autocast, one thread per core"),
        ([product("float", name="aten::conv2d")], "Try bfloat16 under autocast, channels_last, one thread per core"),
        ([product("c10::BFloat16", "c10::BFloat16")], "Try one thread per core"),
        ([product()], "Try bfloat16 under autocast (unless it is on already), one thread per core"),
        (
            [event("python_function", "torch/amp/autocast_mode.py(350): __enter__", 2, 4), product()],
            "Try one thread per core",
        ),
        ([op("aten::mkldnn_rnn_layer_backward", 10, 90)], "time steps of a recurrent layer"),
        ([op("## Call CompiledFxGraph fabc ##", 10, 90)], "Try bfloat16 under autocast (unless"),
        (
            [op("## Call CompiledFxGraph fabc ##", 10, 90), product("c10::Half", name="aten::addmm") | {"dur": 5}],
            "Try one thread per core (torch.set_num_threads); a GPU computes faster: this is compiled already",
        ),
    ],
)
def test_a_smaller_type_is_advised_only_where_it_is_not_used(tmp_path, events, said):
    assert said in advice(tmp_path / "a.json", *events)


def test_where_no_operator_stands_out_none_gets_advice(tmp_path):
    names = "mm", "div", "relu", "exp", "sqrt", "cumsum", "sort", "topk"
    said = advice(tmp_path / "a.json", *(op(f"aten::{name}", 10 * k, 10 * k + 10) for k, name in enumerate(names)))
    assert said.endswith("none of them stands out.")


@pytest.mark.parametrize(("other", "said"), [("relu", "run under torch.autocast with bfloat16"), ("half", "already")])
def test_the_same_on_a_gpu(tmp_path, other, said):
    names = {"half": "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x4_nn", "relu": "relu_kernel"}
    events = [
        op("aten::mm", 5, 20),
        launch(10, 15, 1),
        kernel("ampere_sgemm_128x64_nn", 20, 80, 1),
        op("aten::mm", 25, 40),
        launch(30, 35, 2),
        kernel(names[other], 80, 95, 2),
    ]
    profile = open_subject([write(tmp_path / "a.json", *BEFORE, step(0, 0, 100), *events)]).profiles[0]
    (finding,) = (each for each in diagnose(profile).all_findings if each.id == "without_tensor_cores")
    assert said in finding.advice


@pytest.mark.parametrize(
    ("gpus", "allocated", "said"),
    [
        ([{"name": "H100"}], 0, "Move the model and its batches to the GPU: nothing was allocated on the H100"),
        ([{"name": "H100"}], 1, "bfloat16"),
        ([{"name": 7}], 0, "bfloat16"),
        ("H100", 0, "bfloat16"),
        ([], 0, "bfloat16"),
    ],
)
def test_a_gpu_that_was_left_alone_is_the_first_thing_to_say(tmp_path, gpus, allocated, said):
    (profile,) = open_subject([write(tmp_path / "t.json", *BEFORE, step(0, 0, 100), product())]).profiles
    run = Run(
        created=now(), tracekit="0", recipe="r", script="r.py", device="cuda", planned=["a"], variants=[],
        environment={"gpus": gpus},
    )  # fmt: skip
    variant = Variant(
        name="a", outcome="ok", requested=Requested(compile=False), memory=Memory(peak_allocated_bytes=allocated)
    )
    (finding,) = diagnose(replace(profile, run=run, variant=variant)).all_findings[:1]
    assert said in finding.do
