"""What a report says about the unprofiled passes, and how it labels profiled times beside them."""

import json
import statistics
from pathlib import Path

import pytest
from msgspec.structs import replace
from small import training

from tracekit import run as runs
from tracekit.faces.shared.document import as_document
from tracekit.faces.shared.wording import doubt
from tracekit.profile import open_subject
from tracekit.report import report as make_report
from tracekit.report.breakdown import TOTAL, Breakdown
from tracekit.report.sections.headline import headline
from tracekit.report.sections.run_facts import facts
from tracekit.run import Measured, Pass, Profiled, Requested, Run, Traces, Turn, Variant

MS = 1_000_000


def measured(*levels, at=0, first=None):
    """Passes with these step times, in ms, which took turns with those of other variants."""
    ns = [round(level * MS) for level in levels]
    passes = [Pass(round=k, started_ns=100 * k + at, step_ns=each, step_all_ns=[each] * 9) for k, each in enumerate(ns)]
    middle = round(statistics.geometric_mean(ns))
    return Measured(
        step_ns=middle,
        step_all_ns=[each for each in ns for _ in range(9)],
        spread_ns=0,
        first_steps_ns=[round(first * MS) if first else middle, middle, middle],
        clock="perf_counter",
        passes=passes,
    )


def reported(tmp_path, eager, compiled, *, python=(40, 10), environment=None):
    """A run of two variants, by default with traces of 150 and 120 µs a step."""
    variants = []
    for at, (name, side) in enumerate((("eager", eager), ("compiled", compiled))):
        training(tmp_path / f"{name}.json", steps=6, python=python[at])
        variants.append(
            Variant(
                name=name,
                outcome="ok",
                requested=Requested(compile=name == "compiled"),
                traces=Traces(steady=f"{name}.json"),
                measured=side,
                profiled=Profiled(step_ns=round((90 + python[at]) * 1000), steps=6),
            )
        )
    run = Run(
        created=runs.now(), tracekit="0", recipe="r", script="r.py", environment=environment or {}, variants=variants
    )
    runs.write(run, tmp_path / "run.json")
    return make_report(open_subject([tmp_path / "run.json"]))


def said(report, kind):
    return [note.text for note in report.notes if note.kind == kind]


def fact(report, label, name="compiled"):
    return next(entry.values.get(name) for entry in facts(report.profiles, report.baseline) if entry.label == label)


def total_of(report):
    """What the table of wall time says beside the difference of the whole."""
    blocks = (block for section in report.sections for block in section.blocks)
    (block,) = (each for each in blocks if isinstance(each, Breakdown) and each.name == "wall")
    return doubt(block, TOTAL, block.compared[0])


def test_a_real_difference_is_told_with_its_interval(tmp_path):
    report = reported(tmp_path, measured(0.12, 0.125, 0.118, 0.121), measured(0.1, 0.104, 0.099, 0.1, at=50, first=9))
    (sentence,) = headline(report)
    assert "compiled takes 101 µs a step unprofiled, 1.20 × faster than eager (1.13–1.28; 4 pairs)." in sentence
    assert "breaks even after" in sentence
    assert "do not agree" not in sentence
    assert fact(report, "against the baseline") == "1.20 × faster (1.13–1.28; 4 pairs)"
    assert fact(report, "step, unprofiled").startswith("101 µs (9")
    (entry,) = as_document(report)["comparison"]
    assert entry["unprofiled"]["interval_covers"].startswith("passes that took turns")
    assert (entry["unprofiled"]["passes"], entry["unprofiled"]["noise"]) == (4, False)
    assert entry["interval_covers"].startswith("the steps of one trace each")


def test_the_processor_time_of_turns_is_told_beside_the_step_time(tmp_path):
    eager, compiled = measured(0.12, 0.125, 0.118), measured(0.1, 0.104, 0.099, at=50)
    turn = Turn(started_ns=1, steps=3, processor_ns=3 * 80_000)
    lived = replace(compiled, passes=[replace(each, turns=[turn] * 3) for each in compiled.passes])
    report = reported(tmp_path, eager, lived)
    assert fact(report, "processor time of a step") == "80.0 µs"
    assert fact(report, "processor time of a step", "eager") is None
    assert fact(report, "step, unprofiled").startswith("101 µs (")


def test_within_noise_nothing_pays_back_and_the_table_has_a_word(tmp_path):
    report = reported(tmp_path, measured(0.125, 0.135, 0.125, 0.13), measured(0.13, 0.125, 0.13, 0.126, at=50, first=9))
    (sentence,) = headline(report)
    assert "within noise" in sentence
    assert "whether it ever pays off is unknown: within noise" in sentence
    assert "Profiled steps are 30.0 µs shorter (one trace each)" in sentence  # the traces differ by a clear 30 µs
    assert "Unprofiled, its difference from eager is not significant: within noise" in said(report, "comparison")[0]
    assert total_of(report) == "unprofiled: noise"
    assert fact(report, "steps to break even") == "unknown: within noise"
    entry = as_document(report)["variants"][1]["measured"]
    assert (entry["pay_back_steps"], entry["never_pays_back"], entry["pay_back_within_noise"]) == (None, False, True)


def test_headline_and_table_never_disagree_without_a_word(tmp_path):
    report = reported(tmp_path, measured(0.1, 0.1, 0.101, 0.1), measured(0.12, 0.121, 0.12, 0.12, at=50))
    (sentence,) = headline(report)
    assert "slower than eager" in sentence
    assert "−30" in sentence
    assert "disagree on which is faster" in sentence
    assert "in the opposite direction" in said(report, "comparison")[0]
    assert total_of(report) == "unprofiled: slower"


@pytest.mark.parametrize(
    ("eager_ms", "python", "said_instead"),
    [
        (0.12, (200, 10), "smaller"),  # the traces say 2.9 ×, the passes 1.2 ×
        (0.30, (40, 10), "larger"),  # 1.25 × and 3 ×
        (0.12, (40, 10), ""),  # 1.25 × and 1.2 ×
        (0.12, (50, 10), ""),  # 1.33 × and 1.2 ×: processes may differ by as much
    ],
)
def test_unprofiled_passes_that_show_another_amount_are_told_where_it_stands(tmp_path, eager_ms, python, said_instead):
    eager = measured(eager_ms, eager_ms * 1.03, eager_ms * 0.98, eager_ms)
    report = reported(tmp_path, eager, measured(0.1, 0.104, 0.099, 0.1, at=50), python=python)
    (sentence,) = headline(report)
    assert total_of(report) == (f"unprofiled: {said_instead}" if said_instead else "")
    assert ("Without the profiler, the difference is" in sentence) == bool(said_instead)
    if said_instead:
        assert f"the difference is {said_instead}: trust that" in sentence
        assert f"Unprofiled, the difference is {said_instead}" in said(report, "comparison")[0]


def test_a_trace_faster_than_the_unprofiled_pass_is_a_warning(tmp_path):
    report = reported(tmp_path, measured(1.0, 1.0, 1.0), measured(0.1, 0.1, 0.1, at=50))
    (warning,) = (text for text in said(report, "warning") if "a profiler adds time" in text)
    assert "0.13 × the unprofiled step time" in warning


def test_a_busy_machine_stands_in_the_report(tmp_path):
    quiet = {"cpus_usable": 2, "cpu_load": 1.4}
    passes = measured(0.1, 0.1), measured(0.1, 0.1, at=50)
    assert not [text for text in said(reported(tmp_path, *passes, environment=quiet), "warning") if "busy" in text]
    report = reported(tmp_path, *passes, environment={**quiet, "cpu_load": 7.0})
    assert "the machine was busy (load 7.0 before" in said(report, "warning")[0]
    loaded = [Pass(round=0, started_ns=0, step_ns=MS, step_all_ns=[MS], load=6.5)]
    sides = [Measured(step_ns=MS, step_all_ns=[MS], spread_ns=0, clock="perf_counter", passes=loaded)] * 2
    assert "6.5 between the passes" in said(reported(tmp_path, *sides, environment=quiet), "warning")[0]


def test_what_other_work_took_stands_in_the_report(tmp_path):
    """A third of the time in turns, and a fiftieth, which is not worth a word."""
    for queued_ns, share in ((MS, "33.3 %"), (MS // 25, "")):
        turn = Turn(started_ns=0, steps=1, processor_ns=MS, queued_ns=queued_ns)
        passes = [Pass(round=k, started_ns=k, step_ns=2 * MS, step_all_ns=[2 * MS], turns=[turn]) for k in range(2)]
        side = Measured(step_ns=2 * MS, step_all_ns=[2 * MS], spread_ns=0, clock="perf_counter", passes=passes)
        warnings = " ".join(said(reported(tmp_path, side, side), "warning"))
        told = f"steps waited {share} of the time for a core that other work held; step times leave that out."
        assert (told in warnings) == bool(share)


def test_an_earlier_run_says_what_its_one_pass_does_not_know(tmp_path):
    one = Measured(step_ns=MS, step_all_ns=[MS, MS + 5, MS - 5] * 10, spread_ns=5, clock="perf_counter")
    two = Measured(step_ns=2 * MS, step_all_ns=[2 * MS, 2 * MS + 5, 2 * MS - 5] * 10, spread_ns=5, clock="perf_counter")
    report = reported(tmp_path, one, two)
    assert "2.0 × slower than eager, untested: one pass each." in headline(report)[0]
    assert total_of(report) == "unprofiled: untested"
    assert fact(report, "steps to break even") == "unknown: one pass each"
    (entry,) = as_document(report)["comparison"]
    assert entry["unprofiled"]["interval_covers"].startswith("nothing: with one pass each")
    assert as_document(report)["variants"][0]["measured"]["passes"] == []
    content = json.loads((tmp_path / "run.json").read_text())
    for variant in content["variants"]:
        del variant["measured"]["passes"]
    (tmp_path / "run.json").write_text(json.dumps(content))
    assert runs.read(tmp_path / "run.json").variants[0].measured == one


def test_steps_that_are_not_alike_are_told(tmp_path):
    (tmp_path / "a").mkdir()
    alike, unlike = measured(0.1, 0.1, 0.1), measured(0.1, 0.1, 0.1, at=50)
    sides = [replace(each, alike=False, period=2) for each in unlike.passes]
    report = reported(tmp_path / "a", alike, replace(unlike, passes=sides, step_all_ns=[16_000, 80_000] * 9))
    (remark,) = (note for note in report.notes if "not alike" in note.text)
    assert remark.variants == ("compiled",)
    assert remark.text.startswith("its steps are not alike (16.0 µs to 80.0 µs), but repeat every 2: ")
    unordered = [replace(each, period=1) for each in sides]
    (tmp_path / "b").mkdir()
    report = reported(tmp_path / "b", alike, replace(unlike, passes=unordered))
    assert any(note.text.endswith("is their mean, not their median.") for note in report.notes)
    first, second = (entry["measured"]["note"] for entry in as_document(report)["variants"])
    assert (first.split(";")[0], "median" in second) == ("unprofiled: the median of the timed steps", False)


def test_two_captures_were_not_in_turns(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        at = 0 if name == "a" else 10_000
        reported(tmp_path / name, measured(0.12, 0.12, 0.13, at=at), measured(0.1, 0.1, 0.11, at=at + 50))
    report = make_report(open_subject([tmp_path / "a" / "run.json", tmp_path / "b" / "run.json"]), "a:eager")
    assert ["measured in another capture" in sentence for sentence in headline(report)] == [False, True, True]


def test_bare_traces_say_what_their_intervals_cover(tmp_path):
    paths = [training(tmp_path / f"{name}.json", steps=6) for name in "ab"]
    report = make_report(open_subject(paths))
    assert said(report, "comparison") == [
        "the differences of the buckets are from one trace each: another trace may differ by more."
    ]
    assert total_of(report) == "~ noise"
    assert ", within noise: " in headline(report)[0]
    report = make_report(open_subject([paths[0], training(tmp_path / "c.json", steps=6, python=400)]))
    assert total_of(report) == ""
    assert ", from one trace each: " in headline(report)[0]
    assert as_document(report)["comparison"][0]["unprofiled"] is None


@pytest.mark.skipif(not Path("sample_traces").is_dir(), reason="a clone only")
def test_the_sample_opens():
    report = make_report(open_subject([Path("sample_traces/run.json")]))
    assert all("untested: one pass each" in sentence for sentence in headline(report))
