"""Steps without annotations: repetitions are found, and if nothing repeats, that is reported."""

import gzip
import json

import pytest
from real import trace_path
from small import event, kernel, launch, op, training, write

from tracekit.cli import main
from tracekit.trace import Trace
from tracekit.trace.steps import find_iterations


def without_steps(path, name):
    """A real trace without its ProfilerStep annotations."""
    document = json.loads(gzip.decompress(trace_path(name).read_bytes()))
    events = [each for each in document["traceEvents"] if not str(each.get("name")).startswith("ProfilerStep#")]
    assert len(events) < len(document["traceEvents"])
    path.write_text(json.dumps(document | {"traceEvents": events}))
    return path


@pytest.mark.parametrize(
    ("name", "by"),
    [
        ("leimao_eager_rtx5080", "the optimizer's steps"),
        ("leimao_cudagraph_manual_rtx5080", "a sequence of 5 operators and launch calls that occurs 7 times"),
        ("luatil_compile_rtx3060", "the optimizer's steps"),
        ("luatil_compile_cudagraph_rtx3060", "the optimizer's steps"),
        ("amd_mi300x_replay", "an operator that occurs 10 times"),
    ],
)
def test_what_is_inferred_is_what_was_annotated(tmp_path, name, by):
    annotated = Trace.load(trace_path(name), use_cache=False).steps
    inferred = Trace.load(without_steps(tmp_path / "a.json", name), use_cache=False).as_told().steps
    assert (inferred.annotated, inferred.inferred) == (False, by)
    assert len(inferred) == len(annotated)
    # Nothing marks where the first step begins and the last ends; the host's time between steps may belong to either.
    length = annotated.done - annotated.begin
    assert (inferred.done - inferred.begin)[1:-1] == pytest.approx(length[1:-1], rel=0.03)
    assert abs(inferred.issued - annotated.issued)[1:].max() < 0.16 * length.mean()


@pytest.mark.parametrize("name", ["param_dlrm_v100_rank0", "pyg_attentivefp_a100"])
def test_one_step_alone_repeats_nothing(tmp_path, name):
    trace = Trace.load(without_steps(tmp_path / "a.json", name), use_cache=False).as_told()
    assert find_iterations(trace) is None
    assert (len(trace.steps), trace.steps.inferred) == (1, None)


def marked(name, start, end):
    return event("user_annotation", name, start, end)


def iterations(path, *events):
    return find_iterations(Trace.load(write(path, *events), use_cache=False))


def test_two_optimizers_that_step_in_turn_make_one_step(tmp_path):
    events = []
    for k in range(4):
        at = 100 * k
        events += [op("aten::mm", at, at + 20), marked("Optimizer.step#Adam.step", at + 30, at + 40)]
        events += [op("aten::mm", at + 50, at + 60), marked("Optimizer.step#SGD.step", at + 70, at + 80)]
    inferred = iterations(tmp_path / "a.json", *events)
    assert inferred.ends.tolist() == [80_000, 180_000, 280_000, 380_000]
    assert inferred.starts.tolist() == [0, 80_000, 180_000, 280_000]


def test_a_recording_that_begins_in_the_middle(tmp_path):
    events = [op("aten::mm", 0, 5), marked("Optimizer.step#SGD.step", 6, 10)]
    for k in range(3):
        at = 10 + 100 * k
        events += [op("aten::mm", at + 9 * n, at + 9 * n + 5) for n in range(8)]
        events.append(marked("Optimizer.step#SGD.step", at + 80, at + 100))
    assert iterations(tmp_path / "a.json", *events).starts.tolist() == [10_000, 110_000, 210_000]


def test_batches_mark_what_has_no_optimizer(tmp_path):
    events = []
    for k in range(3):
        at = 100 * k
        events += [marked("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at, at + 30)]
        events += [op("aten::mm", at + 30, at + 50 + k), op(f"aten::other{k}", at + 60, at + 70)]
    events.append(marked("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 300, 301))  # there are no more
    inferred = iterations(tmp_path / "a.json", *events)
    assert inferred.basis == "the batches asked for"
    assert inferred.starts.tolist() == [0, 100_000, 200_000]


def test_a_model_of_equal_layers_is_no_step_for_each_layer(tmp_path):
    names = ["aten::embedding", *["aten::mm", "aten::add", "aten::relu"] * 10, "aten::linear", "aten::argmax"]
    every = [op(name, 10 * k, 10 * k + 5) for k, name in enumerate(names * 4)]
    inferred = iterations(tmp_path / "a.json", *every)
    assert inferred.basis == "a sequence of 33 operators that occurs 4 times"


def test_what_does_not_repeat(tmp_path):
    assert iterations(tmp_path / "a.json", *(op(f"aten::op{k}", 10 * k, 10 * k + 5) for k in range(30))) is None
    assert iterations(tmp_path / "b.json", kernel("gemm", 0, 10, 1), launch(0, 1, 1)) is None


def training_pass(at, layers=3):
    """Equal layers, backward through them and a new batch, 100 µs."""
    forward = [op("aten::linear", at + 5 * k, at + 5 * k + 4) for k in range(layers)]
    backward = [
        op("autograd::engine::evaluate_function: AddmmBackward0", at + 50 + 5 * k, at + 54 + 5 * k)
        for k in range(layers)
    ]
    return [*forward, *backward, op("aten::copy_", at + 90, at + 99)]


def test_what_comes_before_and_after_is_no_part_of_an_iteration(tmp_path):
    before = [op(f"aten::init{k}", 10 * k, 10 * k + 5) for k in range(20)]
    after = [op(f"aten::test{k}", 3200 + 10 * k, 3205 + 10 * k) for k in range(20)]
    passes = [each for k in range(30) for each in training_pass(200 + 100 * k)]
    inferred = iterations(tmp_path / "a.json", *before, *passes, *after)
    assert inferred.starts.tolist() == [200_000 + 100_000 * k for k in range(30)]
    assert inferred.ends[-1] == 3_199_000


def test_three_calls_of_a_compiled_region_are_three_iterations(tmp_path):
    calls = [op("Torch-Compiled Region: 0/0", 1000 * k + 10, 1000 * k + 900) for k in range(3)]
    inferred = iterations(tmp_path / "a.json", op("aten::randn", 0, 5), *calls, op("aten::sum", 3000, 3005))
    assert inferred.starts.tolist() == [10_000, 1_010_000, 2_010_000]


def test_the_layers_of_a_single_pass_are_none(tmp_path):
    names = ["aten::embedding", *["aten::mm", "aten::add", "aten::relu"] * 12, "aten::linear"]
    assert iterations(tmp_path / "a.json", *(op(name, 10 * k, 10 * k + 5) for k, name in enumerate(names))) is None


def test_calls_of_one_module_are_passes_and_its_layers_are_none(tmp_path):
    before, calls, layers = [op(f"aten::init{k}", k, k + 1) for k in range(5)], [], []
    for k in range(20):
        at = 100 + 100 * k
        calls += [op("aten::mm", at + 10, at + 20), op("aten::relu", at + 30, at + 40)]
        layers.append(event("python_function", f"nn.Module: Block_{k}", at + 5, at + 45))
    whole = [event("python_function", "nn.Module: Net_0", 100 + 100 * k + 2, 100 + 100 * k + 50) for k in range(20)]
    assert iterations(tmp_path / "a.json", *before, *calls, *layers) is None
    assert len(iterations(tmp_path / "b.json", *before, *calls, *layers, *whole).starts) == 20


NEXT_BATCH = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def batch(at, work=8, length=100):
    """A batch is asked for, and then this many operators run."""
    return [
        marked(NEXT_BATCH, at, at + 5),
        *(op(f"aten::op{k}", at + 10 * k + 10, at + 10 * k + 15) for k in range(work)),
    ]


def test_a_last_one_that_is_cut_in_its_middle_is_in_no_mean(tmp_path, capsys):
    """A step takes 100 µs; of the last, 55 µs were recorded."""
    path = write(tmp_path / "a.json", *batch(0), *batch(100), *batch(200), *batch(300, work=5))
    assert main(["report", str(path), "--format", "json"]) == 0
    variant = json.loads(capsys.readouterr().out)["variants"][0]
    assert variant["mean_over"] == [0, 1, 2]
    assert variant["mean"]["wall_ns"] == 100_000


def test_a_short_one_whose_ends_are_marked_is_whole(tmp_path):
    """The last of which much was recorded takes 90 µs, and then the next batch was asked for."""
    found = iterations(tmp_path / "a.json", *batch(0), *batch(100), *batch(200), *batch(290, work=2))
    assert found.ends.tolist() == [100_000, 200_000, 290_000]
    assert found.whole.all()


@pytest.mark.parametrize(
    ("names", "basis"),
    [
        (("aten::mm",), "an operator that occurs 9 times"),
        (("cudaLaunchKernel",), "a launch call that occurs 9 times"),
        (("cudaGraphLaunch", "cudaLaunchKernel"), "a sequence of 2 launch calls that occurs 9 times"),
        (("aten::mm", "cudaGraphLaunch"), "a sequence of 2 operators and launch calls that occurs 9 times"),
    ],
)
def test_what_repeats_is_named(tmp_path, names, basis):
    events = [
        op(name, 100 * k + 10 * n, 100 * k + 10 * n + 8)
        if "::" in name
        else launch(100 * k + 10 * n, 100 * k + 10 * n + 8, 10 * k + n + 1, name)
        for k in range(9)
        for n, name in enumerate(names)
    ]
    assert iterations(tmp_path / "a.json", *events).basis == basis


def test_a_step_without_work_is_none(tmp_path):
    path = write(
        tmp_path / "a.json", *batch(0), *batch(100), *batch(200, work=0), *batch(300), *batch(400), *batch(500, 0)
    )
    assert find_iterations(Trace.load(path, use_cache=False)).starts.tolist() == [0, 100_000, 300_000, 400_000]


@pytest.mark.parametrize(("other_us", "steps", "said"), [(100, 4, "4 steps are"), (250, 1, "covers only 61.5 % of it")])
def test_what_is_only_a_part_of_the_recording_is_no_step(tmp_path, capsys, other_us, steps, said):
    """Four iterations of 100 µs, and other work after them."""
    path = write(
        tmp_path / "a.json", *(each for k in range(4) for each in batch(100 * k)), op("aten::save", 400, 400 + other_us)
    )
    trace = Trace.load(path, use_cache=False).as_told()
    assert len(trace.steps) == steps
    assert any(said in entry.message for entry in trace.health)


def test_the_start_up_before_the_first_operator_is_named_and_does_not_count(tmp_path):
    idle = event("cuda_runtime", "cudaFree", 0, 900)
    path = write(tmp_path / "a.json", idle, *(each for k in range(4) for each in batch(1000 + 100 * k)))
    trace = Trace.load(path, use_cache=False).as_told()
    assert len(trace.steps) == 4
    assert any("1.00 ms before the first" in entry.message for entry in trace.health)


@pytest.mark.parametrize("cat", ["user_annotation", "cpu_op"])
def test_the_parameters_of_one_optimizer_step_are_no_steps(tmp_path, cat):
    update = [[op("aten::item", at, at + 4), op("aten::mul_", at + 5, at + 9)] for at in range(20, 1000, 10)]
    around = event(cat, "Optimizer.step#AdamW.step", 15, 1005)
    loop = op("aten::linear", 0, 5), *(each for pair in update for each in pair)
    assert len(iterations(tmp_path / "a.json", *loop).starts) == 98
    assert iterations(tmp_path / "b.json", around, *loop) is None


def unmarked(path, steps=5):
    training(path, steps=steps)
    document = json.loads(path.read_text())
    document["traceEvents"] = [each for each in document["traceEvents"] if not each["name"].startswith("ProfilerStep")]
    path.write_text(json.dumps(document))
    return path


def test_the_report_rests_on_them_and_says_so(tmp_path, capsys):
    path = unmarked(tmp_path / "a.json")
    assert main(["report", str(path)]) == 0
    said = _plain(capsys)
    assert "5 steps are inferred from an operator that occurs 5 times" in said
    assert "mean of 4 of 5 inferred steps" in said  # nothing was recorded of the last one's wait for the next
    assert "One that was cut off is left out of means." in said
    assert main(["report", str(path), "--steps", "annotated"]) == 0
    said = _plain(capsys)
    assert "--steps infer finds 5 steps, by" in said


def test_programs_get_the_steps_of_the_contract_and_the_iterations(tmp_path, capsys):
    assert main(["report", str(unmarked(tmp_path / "a.json")), "--format", "json"]) == 0
    variant = json.loads(capsys.readouterr().out)["variants"][0]
    assert (len(variant["steps"]), variant["steps_from"]) == (1, None)
    found = variant["iterations"]
    assert (len(found["steps"]), found["inferred_from"]) == (5, "an operator that occurs 5 times")
    for each in variant["steps"] + found["steps"]:
        assert sum(each["wall"].values()) == each["wall_ns"]
        assert sum(each["host"].values()) == each["host_ns"]
    assert variant["mean_over"] == [0, 1, 2, 3]  # the last one is cut off where its work ends
    assert variant["mean"]["wall_ns"] == pytest.approx(sum(each["wall_ns"] for each in found["steps"][:4]) / 4)


def _plain(capsys):
    return " ".join(capsys.readouterr().out.split())
