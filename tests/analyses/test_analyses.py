"""Each analysis on a trace of a few events, and an analysis that registers itself."""

import itertools
import json

import pyarrow as pa
import pytest
from msgspec.structs import replace
from real import trace_names, trace_path
from rich.console import Console
from small import event, kernel, launch, op, step, training, write

from tracekit.analyses import Answer, analysis, answers, unregister
from tracekit.analyses.compiled_code import fallbacks
from tracekit.analyses.compiles import kind_of
from tracekit.faces import Options, parquet, text
from tracekit.faces.json import render
from tracekit.profile import open_subject
from tracekit.report import report
from tracekit.run import Ledger, Limit, Requested, Skip, Variant
from tracekit.trace.schema import column
from tracekit.vocabulary.kernel_class import kernel_class


def answer_about(path, name):
    profile = open_subject([path]).profiles[0]
    return next(entry for entry in answers(profile) if entry.analysis == name)


def test_steps(tmp_path):
    answer = answer_about(training(tmp_path / "t.json", steps=3), "steps")
    assert answer.table["wall_ns"].to_pylist() == [110_000, 111_000, 112_000]
    assert answer.table["busy"].to_pylist() == pytest.approx([30 / 110, 30 / 111, 30 / 112])
    assert "3 steady steps take 111 µs" in answer.sentence
    assert "mostly waits for the host" in answer.sentence
    alone = answer_about(training(tmp_path / "one.json", steps=1), "steps")
    assert alone.sentence.startswith("1 step takes 110 µs; ")  # nobody can see whether it is steady


def test_a_host_that_waits_issues_nothing_meanwhile(tmp_path):
    events = [launch(5, 10, 1), kernel("gemm", 12, 190, 1), launch(15, 195, 0, "cudaDeviceSynchronize")]
    path = write(tmp_path / "t.json", step(1, 0, 200), op("aten::mm", 0, 12), *events)
    said = answer_about(path, "steps").sentence
    assert said.startswith(
        "1 step takes 200 µs; the host takes 20.0 µs to issue it and waits 180 µs in syncs, and the GPU"
    )


def test_the_median_of_steps_of_two_kinds_is_not_told(tmp_path):
    ends = [0, *itertools.accumulate([16, 80] * 5)]
    two_kinds = [step(number, *bounds) for number, bounds in enumerate(itertools.pairwise(ends))]
    said = answer_about(write(tmp_path / "t.json", *two_kinds), "steps").sentence
    assert said == "10 steady steps take 48.0 µs on average (16.0 µs to 80.0 µs)."


@pytest.mark.parametrize(
    ("call", "around", "said"),
    [
        ("cudaLaunchKernel", "aten::mm", "waits for the host"),
        ("cudaStreamSynchronize", "aten::item", "idles because the host waits for it"),
        (None, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "waits for the next batch"),
        (None, "dynamo", "waits while something is compiled"),
    ],
)
def test_what_an_idle_gpu_waits_for(tmp_path, call, around, said):
    events = [step(0, 0, 1000), op(around, 100, 900), launch(920, 930, 1), kernel("gemm", 940, 1000, 1)]
    if call is not None:
        events.append(launch(110, 890, 9, call))
    sentence = answer_about(write(tmp_path / "t.json", *events), "steps").sentence
    assert sentence.endswith(f"; otherwise, it mostly {said}.")


def test_the_shares_of_kernels_are_those_of_a_step(tmp_path):
    """Work from before the first step is in the totals, but in no step, and so in no share."""
    step_of_two = [launch(10, 12, 5), kernel("a", 40, 70, 5), launch(14, 16, 6), kernel("b", 70, 80, 6)]
    old = kernel("b", 0, 40, 1)
    answer = answer_about(write(tmp_path / "t.json", step(0, 0, 100), *step_of_two, old), "kernels")
    shares = dict(zip(answer.table["name"].to_pylist(), answer.table["share"].to_pylist(), strict=True))
    assert shares == {"a": 0.75, "b": 0.25}
    assert "a: 30.0 µs a step, 75.0 % of its GPU time" in answer.sentence


def test_kernels_with_their_launch_and_operator(tmp_path):
    path = write(
        tmp_path / "t.json",
        step(5, 0, 100),
        op("aten::mm", 10, 30),
        launch(15, 20, 3),
        kernel("sgemm", 40, 50, 3),
        kernel("Memset (Device)", 60, 61, 9, cat="gpu_memset"),
    )
    answer = answer_about(path, "kernels")
    first, second = answer.rows.table().to_pylist()
    assert (first["name"], first["step"], first["operator"], first["latency_ns"]) == ("sgemm", 5, "aten::mm", 25_000)
    assert (first["kind"], first["class"], first["stream"]) == ("kernel", "matmul", "7")
    assert (second["step"], second["launch"], second["operator"]) == (None, None, None)
    assert answer.table["step_ns"].to_pylist() == [10_000.0, None]  # without a launch, the step is unknown
    assert "in the 21.0 µs from the first to the last, the GPU is idle for 10.0 µs (47.6 %)" in answer.sentence


def test_launches_of_a_graph(tmp_path):
    path = write(
        tmp_path / "t.json",
        step(1, 0, 100),
        launch(10, 14, 3, "cudaGraphLaunch"),
        *(kernel(f"k{number}", 20 + 10 * number, 28 + 10 * number, 3) for number in range(4)),
    )
    (row,) = answer_about(path, "launches").rows.table().to_pylist()
    assert (row["graph"], row["activities"], row["latency_ns"], row["dur_ns"]) == (True, 4, 10_000, 4_000)


def test_a_host_that_a_full_queue_holds_up_is_not_said_never_to_wait(tmp_path):
    starts = [(10, 15), (20, 25), (30, 35), (40, 640)]
    events = [launch(*span, n) for n, span in enumerate(starts, 1)]
    events += [kernel("k", 20 + 250 * n, 265 + 250 * n, n + 1) for n in range(4)]
    said = answer_about(write(tmp_path / "t.json", step(1, 0, 1100), *events), "syncs").sentence
    assert said.startswith(
        "No sync; but launch calls that take far longer than usual hold up the host for 595 µs a step"
    )
    events[3] = launch(40, 46, 4)
    said = answer_about(write(tmp_path / "u.json", step(1, 0, 1100), *events), "syncs").sentence
    assert said == "The host never waits for the GPU."


def test_launch_calls_whose_work_is_not_shown_are_told(tmp_path):
    events = [step(1, 0, 100), launch(10, 14, 3), kernel("k", 20, 28, 3), launch(30, 34, 4, "cudaMemsetAsync")]
    said = answer_about(write(tmp_path / "t.json", *events), "launches").sentence
    assert said.startswith("2 launch calls a step (1 of them without work in the trace) occupy the host for 8.00 µs")


def test_work_in_another_clock_is_there_though_nobody_knows_when(tmp_path):
    calls = [event for k in range(3) for event in (step(k, 100 * k, 100 * k + 60), launch(100 * k, 100 * k + 5, k + 1))]
    path = write(tmp_path / "t.json", *calls, *(kernel("k", 1e9 + 9 * k, 1e9 + 9 * k + 5, k + 1) for k in range(3)))
    said = {name: answer_about(path, name).sentence for name in ("launches", "kernels")}
    assert said["launches"].endswith("; when the GPU did the work is unknown.")
    assert said["kernels"].startswith("3 kernels and copies of unknown steps (the host and the GPU have two clocks)")


def test_a_gpu_that_never_idles_is_not_idle_for_no_time(tmp_path):
    path = write(tmp_path / "t.json", step(1, 0, 40), launch(0, 4, 1), kernel("a", 5, 20, 1), kernel("a", 20, 40, 1))
    assert "in the 35.0 µs from the first to the last, the GPU is never idle." in answer_about(path, "kernels").sentence


def test_medians_of_whole_microseconds_are_told_without_decimals(tmp_path):
    events = [step(1, 0, 100), op("aten::empty", 4, 4), launch(10, 14, 1), kernel("k", 22, 28, 1)]
    said = answer_about(write(tmp_path / "t.json", *events), "launches").sentence
    assert said.endswith("half of the work starts within about 12 µs of its call.")
    exact = write(tmp_path / "exact.json", *events, op("aten::empty", 4.5, 5.5))
    assert answer_about(exact, "launches").sentence.endswith("half of the work starts within 12.0 µs of its call.")


def test_syncs_that_cost_nothing(tmp_path):
    events = [step(1, 0, 90), launch(0, 4, 1), kernel("a", 5, 90, 1), launch(10, 30, 0, "cudaStreamSynchronize")]
    said = answer_about(write(tmp_path / "t.json", *events), "syncs").sentence
    assert said == "The GPU never idles because of 1 sync a step; the host waits 20.0 µs in it."


def test_syncs_tail_and_refill_and_whose_line_it_was(tmp_path):
    path = write(
        tmp_path / "t.json",
        step(1, 0, 200),
        event("python_function", "train.py(12): loop", 0, 200),
        event("python_function", "torch/utils/data.py(3): inner", 4, 199),
        launch(5, 10, 1),
        kernel("a", 12, 40, 1),
        op("aten::item", 15, 52),
        event("cuda_runtime", "cudaStreamSynchronize", 20, 50),
        launch(80, 90, 2),
        kernel("b", 92, 120, 2),
    )
    answer = answer_about(path, "syncs")
    assert answer.sentence == "The GPU idles for 30.0 µs a step because of 1 sync; the host waits 30.0 µs in it."
    (row,) = answer.rows.table().to_pylist()
    assert (row["operator"], row["where"]) == ("aten::item", "train.py:12 loop")
    # It waited 20 µs before the GPU ran dry at 40, so it is to blame until 20 µs after its return at 50.
    assert (row["dur_ns"], row["tail_ns"], row["refill_ns"], row["stall_ns"]) == (30_000, 10_000, 20_000, 30_000)


def test_the_captures_own_wait_is_no_sync_of_the_trainings_and_its_time_is_left_out(tmp_path):
    def events(name):
        return (
            step(1, 0, 100),
            launch(5, 10, 1),
            kernel("a", 12, 60, 1),
            event("cuda_runtime", "cudaStreamSynchronize", 20, 30),
            event("user_annotation", name, 40, 95),
            event("cuda_runtime", "cudaDeviceSynchronize", 42, 90),
        )

    paths = [write(tmp_path / f"{name}.json", *events(name)) for name in ("tracekit.synchronize", "mine")]
    marked_syncs, unmarked_syncs = (answer_about(path, "syncs") for path in paths)
    marked, unmarked = open_subject(paths).profiles
    assert unmarked_syncs.rows.table()["call"].to_pylist() == ["cudaStreamSynchronize", "cudaDeviceSynchronize"]
    assert marked_syncs.rows.table()["call"].to_pylist() == ["cudaStreamSynchronize"]
    assert unmarked.means["wall"].parts["sync_stall"] == 30_000
    assert marked.means["wall"].parts["sync_stall"] == 0
    assert (marked.means["wall"].step_ns, marked.contract_means["wall"]) == (60_000, unmarked.means["wall"])


def test_without_a_gpu_the_operators_that_would_wait(tmp_path):
    path = write(tmp_path / "t.json", step(1, 0, 100), op("aten::item", 5, 9), op("aten::_local_scalar_dense", 6, 8))
    answer = answer_about(path, "syncs")
    assert answer.rows.table()["call"].to_pylist() == ["aten::_local_scalar_dense"]
    assert answer.rows.table()["stall_ns"].to_pylist() == [None]


def test_compiles_first_and_again(tmp_path):
    def marker(start, text):
        return event("user_annotation", f"dynamo_data: fn_name=f, compile_id={text}", start, start + 1)

    path = write(
        tmp_path / "t.json",
        step(0, 0, 100),
        op("dynamo", 10, 50),
        marker(11, "0/0"),
        op("dynamo", 20, 30),
        marker(21, "1/0"),
        step(1, 100, 200),
        op("dynamo", 110, 150),
        marker(111, "0/1"),
        step(2, 200, 300),
        op("_compile.compile_inner (dynamo_timed)", 210, 250),
        op("Torch-Compiled Region: 0/2", 260, 270),
    )
    spans = answer_about(path, "compiles").table.to_pylist()
    assert [(row["step"], row["id"], row["kind"], row["dur_ns"]) for row in spans] == [
        (0, "0/0", "first", 40_000),
        (1, "0/1", "recompile", 40_000),
        (2, "0/2", "recompile", 40_000),
    ]


def test_what_was_given_up_and_what_runs_without_its_graph(tmp_path):
    path = training(tmp_path / "t.json", steps=2)
    profile = open_subject([path]).profiles[0]
    assert "Cannot be answered" in fallbacks(profile).sentence
    ledger = Ledger(
        limits=[Limit(frame=3, file="train.py", line=7, name="forward", reason="size changed", t_ns=20)],
        skips=[
            Skip(compile="0/1", reason="cpu device", file="train.py", line=9, t_ns=10),
            Skip(compile="0/2", reason="cpu device", file="train.py", line=9, t_ns=30),
        ],
    )
    variant = Variant(name="compiled", outcome="ok", requested=Requested(compile=True), ledger=ledger)
    answered = fallbacks(replace(profile, variant=variant))
    assert answered.sentence == (
        "1 function reached the recompile limit and ran eagerly from then on; 2 times no CUDA graph was recorded."
    )
    assert [tuple(row.values()) for row in answered.table.to_pylist()] == [
        ("no CUDA graph", "train.py:9", None, "cpu device", 2, "0/1, 0/2"),
        ("eager", "train.py:7", "forward", "size changed", 1, "3"),
    ]


def test_kinds():
    assert kind_of("dynamo", None) == "unknown"
    assert kind_of("dynamo", "!ca/3/1") == "recompile"
    assert kind_of("entire_backward_compile", "0/1") == "backward"
    assert [kernel_class(name) for name in ("ncclDevKernel", "triton_poi_fused", "Memcpy HtoD", "odd")] == [
        *("communication", "elementwise", "copy", "other"),
    ]


def test_another_analysis_reaches_every_face(tmp_path):
    schema = pa.schema(
        [column("colour", pa.string(), "what it looks like"), column("dur_ns", pa.int64(), "how long", "ns")]
    )

    @analysis("rainbow")
    def ask(_):
        rows = pa.Table.from_pylist([{"colour": "violet", "dur_ns": 20}], schema=schema)
        return Answer("rainbow", "Rainbow", "All the colours.", rows)

    try:
        # A CPU's report is short: no other table is worth more than this one on two screens.
        subject = open_subject([write(tmp_path / "t.json", step(0, 0, 100), op("aten::mm", 10, 90))])
        made = report(subject)
        console = Console(width=120, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
        text.show(made, console)
        terminal = console.export_text()
        assert "All the colours." in terminal
        assert "violet" in terminal
        assert "20 ns" in terminal
        entry = json.loads(render(made))["answers"][-1]
        assert (entry["analysis"], entry["rows"]) == ("rainbow", [["violet", 20]])
        parquet.export(made, tmp_path, Options())
        assert (tmp_path / "rainbow.parquet").is_file()
        assert "what it looks like" in (tmp_path / "SCHEMA.md").read_text()
    finally:
        unregister("rainbow")


@pytest.mark.traces
@pytest.mark.parametrize("name", trace_names())
def test_the_calls_of_a_step_times_their_mean_are_its_time(name):
    """First calls and steps that compile are in none of the three, although the trace holds them."""
    profile = open_subject([trace_path(name)]).profiles[0]
    for question in ("kernels", "launches", "operators"):
        table = next(each.table for each in answers(profile) if each.analysis == question)
        for row in table.to_pylist():
            if row["per_step"]:
                assert row["per_step"] * row["mean_ns"] == pytest.approx(row["step_ns"])


def test_a_single_kernel_is_told_as_one(tmp_path):
    path = write(tmp_path / "t.json", step(0, 0, 100), launch(10, 20, 1), kernel("gemm", 30, 80, 1))
    assert answer_about(path, "kernels").sentence == "There is only one: gemm, which takes 50.0 µs."


def test_what_torchscript_compiles_is_no_compilation_of_torch_compile(tmp_path):
    """It has a finding of its own, so the section must not say that nothing is compiled."""
    path = write(tmp_path / "t.json", step(0, 0, 100), op("fallback_function", 10, 90))
    assert answer_about(path, "compiles").sentence == "torch.compile compiles nothing in this trace."
