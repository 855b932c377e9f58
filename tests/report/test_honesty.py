"""No face claims what cannot be known: traces that lack a part, and answers about them."""

import json

import numpy as np
import pytest
from small import event, kernel, launch, op, step, write

from tracekit.analyses import answers
from tracekit.cli import main
from tracekit.faces.shared.document import as_document
from tracekit.profile import open_subject
from tracekit.report import report as make_report
from tracekit.report.sections.headline import step_lines
from tracekit.report.tables import streams

GRAPH = "cudaGraphLaunch"


def opened(path):
    return open_subject([path]).profiles[0]


def sentences(path):
    return {answer.analysis: answer.sentence for answer in answers(opened(path))}


@pytest.mark.parametrize(
    "events",
    [
        [launch(5, 5, 1), kernel("k", 9, 9, 1)],
        [launch(5, 5, 0, "cudaDeviceSynchronize"), op("dynamo", 6, 6)],
        [kernel("k", 9, 9, 1)],
    ],
)
def test_a_file_in_which_nothing_lasts_is_reported(tmp_path, events, capsys):
    assert main(["report", str(write(tmp_path / "t.json", *events))]) == 0
    assert "neither wall nor host time is known" in capsys.readouterr().out


def unseen_graphs(path):
    """Step 0 compiles, and its kernel is recorded; nothing of the graphs that the other steps replay is."""
    events = [step(0, 0, 100), op("dynamo", 10, 60), launch(70, 75, 1), kernel("k", 80, 90, 1)]
    for k in range(1, 4):
        events += [step(k, 100 * k, 100 * k + 100), launch(100 * k + 10, 100 * k + 15, 10 + k, GRAPH)]
    return write(path, *events)


def test_steady_steps_without_a_wall_view_leave_their_host_view(tmp_path):
    report = make_report(open_subject([unseen_graphs(tmp_path / "t.json")]))
    (variant,) = as_document(report)["variants"]
    assert [each["steady"] for each in variant["steps"]] == [False, True, True, True]
    assert (variant["mean"]["wall"], variant["mean"]["wall_ns"]) == (None, None)
    assert (variant["mean"]["host"]["python"], variant["mean"]["host"]["compile"]) == (95_000.0, 0.0)
    assert variant["mean_over"] == variant["host_mean_over"] == [1, 2, 3]
    assert not [note for note in report.notes if note.kind == "mean"]
    assert "is unknown" in sentences(tmp_path / "t.json")["steps"]


def lengths(path, *durations):
    starts = np.cumsum((0, *durations))
    spans = zip(starts.tolist(), starts[1:].tolist(), strict=False)
    return write(path, *(piece for k, (a, b) in enumerate(spans) for piece in (step(k, a, b), op("aten::mm", a, b))))


def test_noise_is_no_matter_of_the_order_of_steps(tmp_path):
    one = lengths(tmp_path / "a.json", *[1000, 2000] * 5)
    for name, durations in (("same", [1010, 2010] * 5), ("turned", [2010, 1010] * 5)):
        report = make_report(open_subject([one, lengths(tmp_path / f"{name}.json", *durations)]))
        assert report.comparisons[0].wall.is_noise()


def test_names_stay_apart_whatever_files_are_called(tmp_path):
    paths = []
    for folder, name, duration in (("x", "a", 100), ("y", "a", 200), ("z", "a (2)", 400)):
        (tmp_path / folder).mkdir()
        paths.append(lengths(tmp_path / folder / f"{name}.json", duration, duration))
    profiles = open_subject(paths).profiles
    assert [profile.name for profile in profiles] == ["a", "a (3)", "a (2)"]
    assert [profile.means["wall"].step_ns for profile in profiles] == [100_000.0, 200_000.0, 400_000.0]


def test_what_a_cut_file_cannot_say_of_a_step_no_face_says(tmp_path):
    events = []
    for k in range(4):
        t = 100 * k
        events += [step(k, t, t + 100), op("aten::mm", t + 5, t + 20), launch(t + 10, t + 15, k + 1)]
        events += [kernel("k", t + 30, t + 40, k + 1), op("aten::add", t + 50, t + 60)]
    whole = json.dumps({"traceEvents": events})
    path = tmp_path / "cut.json"
    path.write_text(whole[: whole.rindex('"aten::add"')])
    subject = open_subject([path])
    assert [each["host"] is None for each in as_document(make_report(subject))["variants"][0]["steps"]] == [
        False
    ] * 3 + [True]
    rows = streams(subject.profiles)["attribution"].table().to_pylist()
    shown = {row["step"] for row in rows if row["view"] == "host" and row["dur_ns"] is not None}
    assert shown == {0, 1, 2}
    assert [value is not None for value in step_lines(make_report(subject), "host")[0].values] == [
        True,
        True,
        True,
        False,
    ]
    assert "the host time of 1 of 4 steps" in " ".join(note.text for note in make_report(subject).notes)


@pytest.mark.parametrize(("operators", "kinds"), [((), []), ((op("aten::mm", 30, 40),), ["inferred"])])
def test_python_is_inferred_only_where_there_is_any(tmp_path, operators, kinds):
    events = [step(0, 0, 100), launch(10, 15, 1), kernel("k", 20, 90, 1), *operators]
    report = make_report(open_subject([write(tmp_path / "t.json", *events)]))
    assert [note.kind for note in report.notes if note.kind == "inferred"] == kinds


def test_the_stalls_of_syncs_add_up_to_their_bucket(tmp_path):
    """Part of the cost of a sync at the end of a step falls into the next step; the first step here compiles."""
    events = [op("dynamo", 960, 980)]
    for k in range(3):
        t = 1000 * k
        events += [step(k, t, t + 1000), op("aten::mm", t + 200, t + 300), launch(t + 210, t + 220, k + 1)]
        events += [
            kernel("k", t + 230, t + 830, k + 1),
            event("cuda_runtime", "cudaDeviceSynchronize", t + 400, t + 950),
        ]
    profile = opened(write(tmp_path / "t.json", *events))
    (answer,) = (each for each in answers(profile) if each.analysis == "syncs")
    assert profile.means["wall"].parts["sync_stall"] > 0
    assert sum(answer.table["stall_ns"].to_pylist()) == profile.means["wall"].parts["sync_stall"]


def test_without_runtime_calls_nothing_is_said_of_them(tmp_path):
    for name, events in (
        ("gpu only", [kernel("k", 0, 8, 1)]),
        ("no runtime", [step(0, 0, 100), op("aten::mm", 5, 10), kernel("k", 20, 50, 1)]),
        ("other names", [event("xpu_runtime", "urEnqueueKernelLaunch", 5, 9, correlation=1), kernel("k", 20, 50, 1)]),
    ):
        by_analysis = sentences(write(tmp_path / f"{name}.json", *events))
        assert by_analysis["launches"].startswith("Cannot be answered"), name
        assert by_analysis["syncs"].startswith("Cannot be answered"), name
    assert by_analysis["kernels"] == "There is only one: k, which takes 30.0 µs."
    gpu_only = as_document(make_report(open_subject([tmp_path / "gpu only.json"])))
    assert gpu_only["variants"][0]["mean"] == {"wall_ns": None, "host_ns": None, "wall": None, "host": None}
    kernels = next(answer for answer in gpu_only["answers"] if answer["analysis"] == "kernels")
    assert "of an unknown step" in kernels["sentence"]
    assert kernels["rows"][0][2] is None


def test_equal_spans_are_told_apart_by_name_not_by_place(tmp_path):
    twins = [op("aten::zeros", 10, 30), op("aten::empty", 10, 30)]
    spans = [op("entire_backward_compile", 40, 60), op("bw_compiler (dynamo_timed)", 40, 60)]
    outcomes = []
    for name, events in (("one", [*twins, *spans]), ("other", [*spans[::-1], *twins[::-1]])):
        path = write(tmp_path / f"{name}.json", step(0, 0, 100), *events, launch(15, 20, 1), kernel("k", 25, 29, 1))
        by_name = {answer.analysis: answer.table.to_pylist() for answer in answers(opened(path))}
        outcomes.append((by_name["launches"][0]["operator"], [row["kind"] for row in by_name["compiles"]]))
    assert (
        outcomes[0] == outcomes[1] == ("aten::zeros", ["unknown"])
    )  # among equals, the lesser name is outside (a compile
    # span's name tells its kind)


def test_two_steps_of_one_number_are_two(tmp_path):
    events = [step(1, 0, 100), op("dynamo", 5, 50), launch(60, 65, 1), kernel("k", 70, 80, 1)]
    events += [step(1, 100, 200), launch(160, 165, 2), kernel("k", 170, 180, 2)]
    profile = opened(write(tmp_path / "t.json", *events))
    by_name = {answer.analysis: answer.table.to_pylist() for answer in answers(profile)}
    assert by_name["kernels"][0]["step_ns"] == profile.means["wall"].parts["gpu_compute"] == 10_000.0
    assert by_name["launches"][0]["per_step"] == 1.0


def test_absurd_step_numbers_and_clocks_are_read(tmp_path):
    for number in ("9" * 20, "9" * 5000):
        odd = event("user_annotation", f"ProfilerStep#{number}", 0, 100)
        path = write(tmp_path / "t.json", odd, op("aten::mm", 5, 50))
        assert main(["report", str(path)]) == 0
    path.write_text(json.dumps({"baseTimeNanoseconds": "x", "traceEvents": [op("dynamo", 5, 50)]}))
    assert main(["report", str(path)]) == 0


def test_the_launch_that_the_gpu_waits_for_is_to_blame(tmp_path):
    """The launch is on another thread, while the main thread is in an operator of its own."""
    events = [
        step(1, 0, 300),
        op("aten::mm", 10, 60),
        event("cpu_op", "autograd::engine::evaluate_function: M", 10, 110, 2),
    ]
    events += [event("cuda_runtime", "cudaLaunchKernel", 20, 30, 2, correlation=1), kernel("k", 55, 65, 1)]
    profile = opened(write(tmp_path / "t.json", *events))
    names = profile.trace.events["name"].to_pylist()
    blamed = {
        names[row["event"]]
        for row in profile.attribution.segments.to_pylist()
        if (row["view"], row["bucket"]) == ("wall", "kernel_launch")
    }
    assert blamed == {"cudaLaunchKernel"}
