"""Intervals of the differences between buckets, over pairs of short traces that variants took in turns."""

import re

import pytest
from msgspec.structs import replace
from small import training

from tracekit import run as runs
from tracekit.errors.reading import BadRunError
from tracekit.faces import Options
from tracekit.faces.latex import render as latex
from tracekit.faces.markdown import render as markdown
from tracekit.faces.shared.document import as_document
from tracekit.faces.shared.explain import explain
from tracekit.faces.text import draw as text
from tracekit.profile import open_subject
from tracekit.profile.compare import COVERS
from tracekit.report import report
from tracekit.report.sections.headline import headline
from tracekit.run import Measured, Pass, Requested, Run, Traces, Variant

MS = 1_000_000


def reported(tmp_path, eager, compiled, broken=()):
    """A run of two variants with a trace after each round; the figures are how long Python takes in a step, µs."""
    variants = []
    for at, (name, side) in enumerate((("eager", eager), ("compiled", compiled))):
        training(tmp_path / f"{name}.json", steps=6, python=side[0])
        passes = [Pass(round=0, started_ns=at, step_ns=MS, step_all_ns=[MS] * 9)]
        for number, python in enumerate(side[1:], 1):
            trace = f"{name}-turn-{number}.json"
            training(tmp_path / trace, steps=4, python=python)
            passes.append(Pass(round=number, started_ns=100 * number, step_ns=MS, step_all_ns=[MS] * 9, trace=trace))
            if number in broken:
                (tmp_path / trace).write_text("[")
        measured = Measured(step_ns=MS, step_all_ns=[MS] * 9, spread_ns=0, clock="perf_counter", passes=passes)
        traces = Traces(steady=f"{name}.json")
        variants.append(
            Variant(name=name, outcome="ok", requested=Requested(compile=at == 1), traces=traces, measured=measured)
        )
    run = Run(created=runs.now(), tracekit="0", recipe="r", script="r.py", variants=variants)
    runs.write(run, tmp_path / "run.json")
    return report(open_subject([tmp_path / "run.json"]))


def python_of(made):
    """The bucket that differs, and its interval, µs."""
    (entry,) = as_document(made)["comparison"]
    key = max(entry["wall"], key=lambda each: abs(entry["wall"][each]))
    low, high = entry["interval"][key]
    return entry, key, (low / 1000, high / 1000)


def test_buckets_have_intervals_over_pairs(tmp_path):
    made = reported(tmp_path, [40, 41, 40, 39, 40, 41, 40], [10, 11, 10, 10, 11, 10, 9])
    entry, key, (low, high) = python_of(made)
    assert (entry["pairs"], entry["interval_covers"].startswith("pairs of traces")) == (6, True)
    assert low <= entry["wall"][key] / 1000 <= high < -20
    assert key not in entry["noise"]
    shown = text(made, Options())
    assert " 6 pairs " in shown
    assert "one trace " not in shown.split("Findings")[1].split("comparison:")[0]
    rows = [line for line in markdown(made, Options()).splitlines() if line.startswith("| ")]
    assert any(" … −" in row for row in rows)
    assert any("| unprofiled: noise |" in row for row in rows)  # these passes are equally long
    assert re.search(r"over 6 pairs of traces\): −\S+ µs \w+", " ".join(headline(made)))


def test_processes_that_differ_are_no_difference(tmp_path):
    """One trace each would show 20 µs; the next processes show as much in the other direction."""
    made = reported(tmp_path, [40, 30, 44, 36, 41, 33], [20, 42, 31, 45, 30, 43])
    entry, key, (low, high) = python_of(made)
    assert abs(entry["wall"][key]) >= 20_000
    assert low < 0 < high
    assert key in entry["noise"]
    assert "~ noise" in text(made, Options())
    (sentence,) = headline(made)
    assert sentence.endswith(": no large part of it is beyond noise.")


def test_a_difference_that_the_pairs_do_not_show_is_marked_where_it_stands(tmp_path):
    """The long traces, in which compiled kernels have names, may run other code than those of the pairs."""
    made = reported(tmp_path, [40, 41, 40, 39, 40, 41, 40], [36, 11, 10, 10, 11, 10, 9])
    entry, key, (low, high) = python_of(made)
    assert low < high < entry["wall"][key] / 1000 < 0
    (sentence,) = headline(made)
    assert re.search(r"Profiled steps are \S+ µs shorter \(−\S+ µs … −\S+ µs over 6 pairs of traces\), but", sentence)
    assert "µs shorter in the longest traces: " in sentence
    assert re.search(r"−\S+ +≠", text(made, Options()))
    assert re.search(r"\| ≠ −\S+ … −", markdown(made, Options()))
    assert re.search(r"[+−]\S+ \(≠ −\S+ … −", explain(made, 10_000))
    assert r"\ne" in latex(made, Options())


def test_differences_inside_their_intervals_are_not_marked(tmp_path):
    made = reported(tmp_path, [40, 41, 40, 39, 40, 41, 40], [10, 11, 10, 10, 11, 10, 9])
    assert "≠" not in text(made, Options())
    assert "in the longest traces" not in " ".join(headline(made))


def test_few_pairs_claim_nothing(tmp_path):
    (tmp_path / "a").mkdir()
    one = as_document(reported(tmp_path / "a", [40, 40], [10, 10]))["comparison"][0]
    assert (one["pairs"], one["interval_covers"]) == (0, COVERS)
    (tmp_path / "b").mkdir()
    with_the_first = as_document(reported(tmp_path / "b", [40, 40, 40], [10, 10, 10]))["comparison"][0]
    assert with_the_first["pairs"] == 3


def test_a_trace_that_cannot_be_read_is_left_out(tmp_path):
    made = reported(tmp_path, [40] * 7, [10] * 7, broken=(2,))
    assert as_document(made)["comparison"][0]["pairs"] == 5


def test_a_trace_outside_the_folder_is_refused(tmp_path):
    reported(tmp_path, [40] * 4, [10] * 4)
    run = runs.read(tmp_path / "run.json")
    (variant, *_) = run.variants
    passes = [replace(each, trace="../elsewhere.json") for each in variant.measured.passes]
    hostile = replace(variant, measured=replace(variant.measured, passes=passes))
    runs.write(replace(run, variants=[hostile, *run.variants[1:]]), tmp_path / "run.json")
    with pytest.raises(BadRunError, match="outside the run's folder"):
        open_subject([tmp_path / "run.json"])
