"""Means are over whole periods of steps; what the longer ones do is told; variants are compared over shared kinds."""

from types import MappingProxyType

import pytest
from small import event, op, step, write

from tests.lines.recorded import call
from tracekit.profile import open_subject
from tracekit.profile.compare import compare
from tracekit.profile.rare_work import rare_work
from tracekit.report import report
from tracekit.report.sections.headline import headline
from tracekit.run import Measured, Pass, Requested, Run, Traces, Variant, now
from tracekit.run import write as write_run

USUAL, RARE = 100, 1000  # µs


def steps(path, kinds, *, first=0):
    """Steps of these kinds: a usual one runs an operator, a rare one another in addition, without gradients."""
    events, at = [], 0
    for number, is_rare in enumerate(kinds, first):
        end = at + (RARE if is_rare else USUAL)
        events += [step(number, at, end), op("aten::relu", at + 10, at + 90)]
        events += [op("aten::mm", at + 100, end - 20)] * is_rare
        at = end
    return write(path, *events)


def run_of(tmp_path, traces, period, step_ns=MappingProxyType({})):
    """A run of variants with these traces, whose unprofiled steps repeat after so many; 1: nothing says so."""
    variants = []
    for name, kinds in traces.items():
        steps(tmp_path / f"{name}.json", kinds)
        ns = step_ns.get(name, 190_000)
        one = Pass(round=0, started_ns=0, step_ns=ns, step_all_ns=[ns] * 20, alike=period == 1, period=period)
        measured = Measured(step_ns=ns, step_all_ns=[ns] * 20, spread_ns=0, clock="perf_counter", passes=[one])
        variants.append(
            Variant(
                name=name,
                outcome="ok",
                requested=Requested(compile=False),
                traces=Traces(steady=f"{name}.json"),
                measured=measured,
            )
        )
    run = Run(created=now(), tracekit="0", recipe="r", script="r.py", variants=variants)
    write_run(run, tmp_path / "run.json")
    return open_subject([tmp_path / "run.json"])


def every_10th(count, first=9):
    return [number % 10 == first for number in range(count)]


def test_steps_that_take_no_time_at_all_have_no_rare_work(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "USUAL", 0)
    (profile,) = run_of(tmp_path, {"eager": [False] * 20}, period=10).profiles
    assert profile.pattern.period == 10
    assert rare_work(profile) is None


@pytest.mark.parametrize("count", [20, 25, 29, 30])
def test_a_mean_is_over_whole_periods(tmp_path, count):
    (profile,) = run_of(tmp_path, {"eager": every_10th(count, first=4)}, period=10).profiles
    assert int(profile.counted.sum()) == count // 10 * 10
    assert profile.means["wall"].step_ns == 190_000


def test_a_bare_trace_shows_its_period_itself(tmp_path):
    (profile,) = open_subject([steps(tmp_path / "t.json", every_10th(44))]).profiles
    assert profile.pattern.period == 10
    assert profile.means["wall"].step_ns == 190_000


def test_what_the_longer_steps_take_is_told(tmp_path):
    subject = run_of(tmp_path, {"eager": every_10th(20)}, period=10)
    rare = rare_work(subject.profiles[0])
    assert (rare.every, rare.longer_ns) == (10, 900_000)
    assert rare.share == pytest.approx(900 / 1900)
    said = "1 of 10 steps takes 900 µs longer than the others, which is 47.4 % of a mean step"
    assert rare.in_words == said
    made = report(subject)
    told = [line for section in made.sections if section.id == "steps" for line in section.blocks[0].lines]
    assert any(said in line for line in told)


def test_of_several_variants_the_headline_tells_it_once_of_the_fastest(tmp_path):
    subject = run_of(tmp_path, {"eager": every_10th(20), "other": every_10th(20)}, period=10, step_ns={"other": 95_000})
    (told,) = [sentence for sentence in headline(report(subject)) if "longer than the others" in sentence]
    assert told == "In other, 1 of 10 steps takes 900 µs longer than the others, which is 47.4 % of a mean step."


@pytest.mark.parametrize(("kinds", "period"), [([False] * 20, 1), ([False] * 20, 10), (every_10th(9) * 2, 10)])
def test_nothing_is_told_where_nothing_is_rare(tmp_path, kinds, period):
    (profile,) = run_of(tmp_path, {"eager": kinds}, period).profiles
    assert rare_work(profile) is None


@pytest.mark.parametrize("period", [1, 50])
def test_variants_are_compared_over_the_kinds_of_steps_that_both_have(tmp_path, period):
    """The evaluation is in one trace only: their difference is not the evaluation."""
    subject = run_of(tmp_path, {"eager": every_10th(19), "other": [False] * 19}, period)
    eager, other = subject.profiles
    assert [eager.unshared, other.unshared] == [(9,), ()]
    assert compare(other, eager).wall.delta_ns == 0
    notes = [note.text for note in report(subject).notes if note.kind == "mean"]
    assert notes == [
        "the means leave out step 9, of 1.00 ms: it does work that another variant's trace does not hold at all."
    ]


def test_both_keep_what_both_have(tmp_path):
    subject = run_of(tmp_path, {"eager": every_10th(20), "other": every_10th(20, first=3)}, period=10)
    assert [profile.unshared for profile in subject.profiles] == [(), ()]
    assert [profile.means["wall"].step_ns for profile in subject.profiles] == [190_000] * 2


def test_a_step_that_the_machine_held_up_is_no_other_kind(tmp_path):
    subject = run_of(tmp_path, {"eager": [False] * 20, "other": [False] * 20}, period=1)
    held_up = tmp_path / "held.json"
    events, at = [], 0
    for number in range(20):
        end = at + (RARE if number == 7 else USUAL)
        events += [step(number, at, end), op("aten::relu", at + 10, end - 10)]
        at = end
    write(held_up, *events)
    (tmp_path / "eager.json").write_bytes(held_up.read_bytes())
    subject = open_subject([tmp_path / "run.json"])
    assert [profile.unshared for profile in subject.profiles] == [(), ()]


GRAD = "torch/autograd/grad_mode.py({}): {}"


def phases(tmp_path, *events):
    (profile,) = open_subject([write(tmp_path / "t.json", step(0, 0, 200), *events)]).profiles
    costs = profile.owner_means.by("wall", lambda owner: owner.phase)
    return {phase: ns / 1000 for phase, ns in costs.items() if ns}


def evaluating(*frames):
    """A function of the user's that calls a module which autograd does not follow, among other things."""
    return (
        call("/home/me/mine.py(1): work", 0, 200),
        *frames,
        op("aten::mm", 60, 100),
        call("nn.Module: Net_0", 110, 130),
        op("aten::addmm", 112, 128),
    )


def test_a_region_without_gradients_around_a_module_is_evaluation(tmp_path):
    frames = call(GRAD.format(81, "__enter__"), 48, 50), call(GRAD.format(85, "__exit__"), 148, 150)
    assert phases(tmp_path, *evaluating(*frames)) == {"eval": 102, "other": 98}


def test_evaluation_lasts_from_eval_to_train(tmp_path):
    module = "torch/nn/modules/module.py({}): {}"
    frames = (
        call(module.format(2000, "eval"), 40, 50),
        call(module.format(1900, "train"), 42, 48),
        call(module.format(1900, "train"), 150, 152),
    )
    assert phases(tmp_path, *evaluating(*frames)) == {"eval": 110, "other": 90}


def test_a_frozen_layer_is_no_evaluation(tmp_path):
    """It is in evaluation mode while the others train."""
    module, run = "torch/nn/modules/module.py({}): {}", "<built-in method run_backward of torch._C._EngineBase object>"
    frames = (
        call(module.format(2000, "eval"), 40, 50),
        call(run, 135, 145),
        call(module.format(1900, "train"), 150, 152),
    )
    assert phases(tmp_path, *evaluating(*frames)) == {"eval": 20, "backward": 10, "other": 170}


def test_regions_that_switch_gradients_on_are_none(tmp_path):
    frames = call(GRAD.format(81, "__enter__"), 48, 50), call(GRAD.format(85, "__exit__"), 148, 150)
    numbered = event("cpu_op", "aten::addmm", 112, 128, **{"Sequence number": 4, "Fwd thread id": 0})
    others = [each for each in evaluating(*frames) if each["name"] != "aten::addmm"]
    assert phases(tmp_path, *others, numbered) == {"forward": 20, "other": 180}


def test_saving_is_a_phase(tmp_path):
    assert phases(
        tmp_path, call("/home/me/mine.py(1): work", 0, 200), call("torch/serialization.py(900): save", 50, 90)
    ) == {"saving": 40, "other": 160}
