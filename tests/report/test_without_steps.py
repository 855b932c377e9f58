"""A recording without steps is spoken of as a recording: nothing of it is "a step"."""

import re

import pytest
from real import trace_names, trace_path
from small import kernel, launch, op, training, write

from tracekit.cli import main
from tracekit.profile import open_subject
from tracekit.profile.recording_words import has_steps, of_the_recording
from tracekit.report import report

SAID = re.compile(r"(?<!\bfor )\b(?:a|an?other|per|each) step\b|\bsteady steps?\b|\bper step\b", re.IGNORECASE)


def everything(path, capsys):
    assert main(["report", str(path), "--full", "--no-cache"]) == 0
    return " ".join(capsys.readouterr().out.split())


def test_neither_headline_nor_findings_nor_tables_speak_of_a_step(tmp_path, capsys):
    events = []
    for k in range(12):  # nothing repeats
        at = 200 * k
        events += [op(f"aten::op{k}", at, at + 150), launch(at + 120, at + 130, k + 1)]
        events.append(kernel(f"kernel{k}", at + 140, at + 145, k + 1))
    said = everything(write(tmp_path / "t.json", *events), capsys)
    assert not SAID.search(said)
    assert "bounds the step" not in said
    assert said.startswith("t takes 2.35 ms in all:")
    assert "Where the wall time of the recording goes" in said
    assert "12 kernels and copies in all" in said
    assert "12 launch calls in all" in said


def test_one_annotated_step_is_a_step(tmp_path, capsys):
    assert "a step" in everything(training(tmp_path / "t.json", steps=1), capsys)


@pytest.mark.parametrize(
    ("said", "instead"),
    [
        ("36 launches a step; a step takes 2 ms", "36 launches in all; the recording takes 2 ms"),
        ("Shares of a step: forward 98 %.", "Shares of the recording: forward 98 %."),
        ("7.36 ms of 9.99 ms a step (73.7 %)", "7.36 ms of 9.99 ms in all (73.7 %)"),
        ("let the profiler warm up for a step", "let the profiler warm up for a step"),
        ("Move it out of the step.", "Move it out of the step."),
        ("the host would still decide a step's time", "the host would still decide the recording's time"),
        ("Memory of a step", "Memory of the recording"),
        ("What the host does during a step", "What the host does during the recording"),
        ("Without it, the host would bound the step.", "Without it, the host would bound the recording."),
    ],
)
def test_the_words(said, instead):
    assert of_the_recording(said) == instead


@pytest.mark.parametrize("name", trace_names())
def test_real_recordings_without_steps(name, capsys):
    path = trace_path(name)
    made = report(open_subject([path]))
    if any(map(has_steps, made.profiles)):
        pytest.skip("it has steps")
    assert not SAID.search(everything(path, capsys))
