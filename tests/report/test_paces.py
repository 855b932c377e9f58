"""The figures at the head of a report: before, after, by how much, and the one thing to do next."""

from pathlib import Path

import pytest
from msgspec.structs import replace
from small import training

from tests.report.test_cards import diagnosed, finding
from tracekit.faces.markdown import draw_blocks as as_markdown
from tracekit.faces.text import draw_blocks as as_text
from tracekit.profile import open_subject
from tracekit.report import report
from tracekit.report.blocks import Headline, of_the_recording_in
from tracekit.report.sections.headline import faster

SAMPLE = Path(__file__).parents[2] / "sample_traces" / "h100" / "modes" / "run.json"


def headline(made) -> Headline:
    (section,) = (each for each in made.sections if each.id == "headline")
    return section.blocks[0]


@pytest.fixture
def pair(tmp_path):
    """Steps of 650 µs, and steps of 51 µs."""
    paths = [
        training(tmp_path / f"trained_gcn_{name}_v100.json", python=us) for name, us in (("eager", 600), ("graphs", 1))
    ]
    return report(open_subject(paths))


def test_from_before_to_after_in_one_unit(pair):
    before, after = (pair.member(f"trained_gcn_{name}_v100").means["wall"].step_ns for name in ("eager", "graphs"))
    said = headline(pair)
    figures = f"{before / 1000:.0f} → {after / 1000:.1f} µs a step"
    assert said.change == f"{figures}: graphs is {before / after:.1f} × faster than eager (one trace each)"
    assert [(pace.name, pace.step_ns, pace.against) for pace in said.paces] == [
        ("eager", before, "baseline"),
        ("graphs", after, f"{before / after:.1f} × faster, one trace each"),
    ]


def test_what_to_do_next_is_said_of_the_fastest(pair):
    slow, fast = pair.diagnoses
    pair.diagnoses[slow] = diagnosed(finding(9e9, do="Mend the slow one."))
    pair.diagnoses[fast] = diagnosed(finding(do=""), finding(do="Mend the fast one."))
    assert (headline(pair).next_do, headline(pair).next_of) == ("mend the fast one.", "graphs")


def test_a_cause_says_more_than_that_the_gpu_sets_the_pace(pair):
    gpu = replace(finding(9e9, do="Make the host faster first."), id="gpu_bound_other")
    pair.diagnoses[[*pair.diagnoses][1]] = diagnosed(gpu, finding(do="Mend the host."))
    assert headline(pair).next_do == "mend the host."


def test_advice_about_it_says_what_it_is(pair):
    it = replace(finding(do="Move it out of the step."), headline="Python is busy")
    pair.diagnoses[[*pair.diagnoses][1]] = diagnosed(it)
    assert headline(pair).last == "Next, in graphs: Python is busy. Move it out of the step."


def test_where_nothing_is_left_to_do_it_says_so(pair):
    pair.diagnoses[[*pair.diagnoses][1]] = diagnosed()
    assert headline(pair).last == "Next, in graphs: nothing worth changing was found."


def test_where_only_the_gpu_is_left_it_says_what_would_help(pair):
    alone = diagnosed()
    pair.diagnoses[[*pair.diagnoses][1]] = replace(alone, verdict=replace(alone.verdict, id="gpu_bound_gemm"))
    said = "Next, in graphs: it is GPU-bound; only fewer, smaller or less precise operations make it faster."
    assert headline(pair).last == said


def test_figures_and_the_next_thing_to_do_lead_the_text(pair):
    pair.diagnoses[[*pair.diagnoses][1]] = diagnosed(finding(do="Mend the host."))
    for draw in (as_text, as_markdown):
        first, second, third = draw([headline(pair)]).splitlines()[:3]
        assert "× faster than eager" in first
        assert "Next, in graphs: mend the host" in second
        assert third.startswith(headline(pair).lines[0][:20].replace("_", "\\_" if draw is as_markdown else "_"))


def test_a_trace_alone_has_its_pace(tmp_path):
    made = report(open_subject([training(tmp_path / "alone.json")]))
    said = headline(made)
    assert said.change.endswith(" µs a step")
    assert [pace.against for pace in said.paces] == [""]
    assert not said.first
    assert not said.last
    assert not of_the_recording_in(said).change.endswith(" a step")


@pytest.mark.parametrize(("ours", "said"), [(1.0, "2.0 × faster"), (4.0, "2.0 × slower"), (2.005, "as fast")])
def test_a_pace_is_compared(ours, said):
    assert faster(ours, 2.0).replace("2.00", "2.0") == said


def test_a_ratio_is_the_same_at_the_head_and_in_the_sentences():
    subject = open_subject([SAMPLE])
    for base in [member.name for member in subject.profiles]:
        said = headline(report(subject, base))
        name, verdict = said.change.partition(": ")[2].split(" is ")
        factor = verdict.partition(" than ")[0]
        assert any(line.startswith(f"{name} takes ") and f", {factor} than {base} (" in line for line in said.lines)
