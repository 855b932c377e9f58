"""Facts that are known about the real traces."""

import pytest
from real import trace_names, trace_path

from tracekit.analyses import answers
from tracekit.analyses.kernels import _idle as idle
from tracekit.base.intervals import Union
from tracekit.faces.shared.document import as_document
from tracekit.profile import open_subject
from tracekit.report import report
from tracekit.report.sections.headline import headline

pytestmark = pytest.mark.traces


def opened(*names):
    return report(open_subject([trace_path(name) for name in names]))


def mean(made, index=0):
    return as_document(made)["variants"][index]["mean"]


def answer(made, name):
    return next(entry for _, entry in made.answers if entry.analysis == name)


def test_half_the_step_is_data_loading():
    wall = mean(opened("tracelens_owlv2_h100_dataloader"))["wall"]
    assert 0.5 < wall["dataload"] / sum(wall.values()) < 0.52


def test_idle_to_the_nanosecond_and_steps_that_last_until_their_work_is_done():
    made = opened("hta_ns_resolution")
    trace = made.profiles[0].trace
    gpu = trace.roles.gpu
    busy = Union.of(trace.ts_ns[gpu], trace.end_ns[gpu])
    assert int(trace.end_ns[gpu].max() - trace.ts_ns[gpu].min()) - busy.total() == 7_574_738
    assert [idle_ns for _, idle_ns in idle(trace).values()] == [7_574_738]
    assert "the GPU is idle for 7.57 ms" in answer(made, "kernels").sentence
    steps = as_document(made)["variants"][0]["steps"]
    assert [round(step["wall_ns"] / 1e6, 1) for step in steps[1:]] == [95.7, 95.6, 95.7, 95.4]
    assert min(step["host_ns"] for step in steps) < 36e6


def test_a_host_operator_that_launches_is_no_kernel():
    made = opened("hta_triton_example")
    kernels = answer(made, "kernels").rows.table()
    assert sum(kernels["dur_ns"].to_pylist()) == 1_760
    variant = as_document(made)["variants"][0]
    assert "wall" in variant["cannot_answer"]
    assert [step["wall"] for step in variant["steps"]] == [None]


def test_a_missing_gpu_side_is_no_idle_gpu():
    made = opened("pyg_timeline_rtx4090_no_kernels")
    variant = as_document(made)["variants"][0]
    assert variant["cannot_answer"].keys() == {"wall"}
    assert variant["mean"]["wall"] is None
    assert variant["mean"]["host"] is not None
    assert any(note.kind == "cannot answer" for note in made.notes)
    assert "the wall time went is unknown" in headline(made)[0]


def test_eager_against_graph_replay():
    made = opened("leimao_eager_rtx5080", "leimao_cudagraph_manual_rtx5080")
    eager, replay = mean(made, 0), mean(made, 1)
    assert 2.5e6 < eager["wall_ns"] < 2.7e6
    assert 0.9e6 < replay["wall_ns"] < 1.0e6
    assert eager["host_ns"] / replay["host_ns"] > 11  # what the annotations alone would suggest
    assert {key: replay["wall"][key] for key in ("dispatch", "python", "kernel_launch")} == dict.fromkeys(
        ("dispatch", "python", "kernel_launch"), 0.0
    )
    (sentence,) = headline(made)
    assert "2.7 × faster" in sentence
    assert "−0.78 ms dispatch" in sentence


def test_compilation_is_first_or_again():
    made = opened("compile_cold_cpu")
    steps = as_document(made)["variants"][0]["steps"]
    shares = {step["step"]: step["wall"]["compile"] / step["wall_ns"] for step in steps}
    assert [number for number, share in shares.items() if share > 0.998] == [0, 2, 4]
    assert [step["step"] for step in steps if not step["steady"]] == [0, 2, 4]
    spans = answer(made, "compiles").table.to_pylist()
    kinds = {step: {span["kind"] for span in spans if span["step"] == step} for step in (0, 2, 4)}
    assert "recompile" not in kinds[0]
    assert "recompile" in kinds[2] & kinds[4]
    assert [span["id"] for span in spans][:4] == ["0/0", "1/0", "1/0", "0/0"]


def test_graph_replays_carry_many_kernels():
    rows = answer(opened("leimao_cudagraph_manual_rtx5080"), "launches").rows.table().to_pylist()
    assert max(row["activities"] for row in rows if row["graph"]) == 36


@pytest.mark.parametrize("name", trace_names() or ["any"])
def test_every_face_takes_every_trace(name):
    from rich.console import Console

    from tracekit.faces import markdown, text
    from tracekit.faces.json import render

    made = opened(name)
    with open("/dev/null", "w") as nowhere:
        text.show(made, Console(file=nowhere, width=80))
    assert markdown.render(made)
    assert render(made)
    for profile in made.profiles:
        for entry in answers(profile):
            assert entry.sentence.endswith((".", "?"))
            assert "nan" not in entry.sentence
