"""A capture from end to end: what it measures, writes and prints."""

import math
import os
import re

import pytest

from tests.capture.capturing import FAILING, Lines, read_trace, write_earlier
from tracekit import run as runs
from tracekit.capture import preparation
from tracekit.capture.harness import Options, capture, exit_code
from tracekit.errors.capturing import NothingCapturedError
from tracekit.run.contrast import contrast
from tracekit.statistics.uncertainty import typical


@pytest.fixture(scope="module")
def captured(recipe, tmp_path_factory):
    """A capture of eager and compiled with all passes, made where an earlier run exists."""
    out = tmp_path_factory.mktemp("captured") / "run.json"
    write_earlier(out)
    lines = Lines()
    run = capture(
        Options(
            recipe,
            ["eager", "compiled"],
            backend="aot_eager",
            device="cpu",
            threads=1,
            passes=3,
            budget=600,
            out=out,
            tell=lines,
        )
    )
    return out, run, lines.text()


def test_the_file_holds_what_capture_returns(captured):
    out, run, _ = captured
    assert runs.read(out) == run
    assert exit_code(run) == 0
    assert [variant.name for variant in run.variants] == run.planned == ["eager", "compiled"]
    assert (run.recipe, run.device, run.data) == ("tiny", "cpu", "random numbers")
    assert run.params == {"hidden": 8, "lr": 0.01, "sizes": [6], "broken": False}
    assert run.environment["torch"]
    assert run.environment["threads"] == 1


def test_an_earlier_run_is_kept(captured):
    out, _, said = captured
    aside = out.with_name("run-20260101-000000.json")
    assert runs.read(aside).recipe == "old"
    assert said.count(f"The earlier run was moved to {aside}") == 1


def test_three_traces_lie_beside_the_run(captured):
    out, run, _ = captured
    for variant in run.variants:
        cold, steady, detail = (run.trace_path(out, variant, which) for which in ("cold", "steady", "detail"))
        assert [*read_trace(cold).steps] == [0, 1, 2]
        assert len(read_trace(steady).steps) == run.steps == 20
        assert len(read_trace(detail).steps) == 3
        assert min(read_trace(steady).steps) >= run.warmup
        header = read_trace(steady).keys
        assert header["tracekit"]["recipe"] == f"tiny {variant.name}"
        assert header["torch_version"] == run.environment["torch"]
        assert "with_stack" not in header
        assert read_trace(detail).keys["with_stack"] == 1
    assert not [each for each in out.parent.rglob("*") if each.suffix == ".part"]


def test_the_unprofiled_pass_is_measured(captured):
    _, run, _ = captured
    for variant in run.variants:
        measured = variant.measured
        assert measured.steps >= 30
        assert min(measured.step_all_ns) <= measured.step_ns <= max(measured.step_all_ns)
        assert len(measured.first_steps_ns) == 3
        assert measured.warmup_steps >= 10
        assert measured.clock == "perf_counter"
        assert measured.infer_ns > 0
        assert variant.profiled.step_ns > 0
        assert variant.memory.host_peak_rss_bytes > 1e7
        assert variant.memory.peak_allocated_bytes is None
        assert (
            variant.memory.start_rss_bytes <= variant.memory.step_peak_rss_bytes <= variant.memory.host_peak_rss_bytes
        )
    eager, compiled = (variant.measured for variant in run.variants)
    assert (eager.compiles, eager.compile_ns) == (0, 0)
    assert (compiled.compiles, compiled.compiles_timed) == (2, 0)  # forward and backward
    assert 0.9 * compiled.first_steps_ns[0] < compiled.compile_ns < compiled.first_steps_ns[0]


def test_later_passes_take_turns_step_by_step_and_find_what_was_compiled(captured):
    _, run, said = captured
    eager, compiled = (variant.measured.passes for variant in run.variants)
    assert run.why_no_turns == ""
    assert [each.round for each in eager] == [each.round for each in compiled] == [0, 1, 2]
    for variant in run.variants:
        first, *later = variant.measured.passes
        assert not first.turns
        assert all(sum(turn.steps for turn in each.turns) == len(each.step_all_ns) for each in later)
        assert all(turn.processor_ns > 0 for each in later for turn in each.turns)
        assert all(each.seconds > 0 and each.load >= 0 and each.counted for each in variant.measured.passes)
        assert variant.measured.step_all_ns[: len(first.step_all_ns)] == first.step_all_ns
    step_ns = math.exp(typical([math.log(each.step_ns) for each in eager]))
    assert run.variants[0].measured.step_ns == pytest.approx(step_ns, abs=1)
    ratio = contrast(run.variants[1].measured, run.variants[0].measured).ratio
    quoted_ns = run.variants[0].measured.step_ns  # a whole number; figures that are quoted agree
    assert run.variants[1].measured.step_ns == pytest.approx(quoted_ns * ratio, abs=1)
    assert "Measuring again, in turns: 3 passes each (--passes): differences above about " in said
    assert "3 rounds: " not in said  # the last one is followed by the result
    assert re.search(r"compiled: .* a step in 3 passes, (.* eager \(\d.*\)|too uncertain to compare with eager)", said)


FAILS_LATER = FAILING.replace("not ctx.sound", "not ctx.sound and os.path.exists(MARK)").replace("import", "import os,")


def test_a_later_pass_that_fails_costs_only_itself(write_recipe, tmp_path, lines, shared):
    recipe, out = write_recipe(FAILS_LATER.replace("MARK", repr(str(shared)))), tmp_path / "run.json"

    def tell(line):
        lines(line)
        if line.startswith("Measuring again"):
            shared.touch()

    run = capture(Options(recipe, ["sound", "unsound"], steps=2, warmup=0, passes=3, budget=600, out=out, tell=tell))
    assert runs.read(out) == run
    sound, unsound = run.variants
    assert (sound.outcome, len(sound.measured.passes)) == ("ok", 3)
    assert (unsound.outcome, len(unsound.measured.passes)) == ("ok", 1)
    assert "an unprofiled pass failed (ValueError: the loss is gone)" in unsound.effective.notes[0]
    assert lines.text().count("unsound: unprofiled pass") == 1


@pytest.mark.parametrize("budget", [0, 1e-3])
def test_a_budget_that_is_spent_leaves_three_passes(recipe, tmp_path, lines, budget):
    run = capture(Options(recipe, ["eager"], steps=2, warmup=0, budget=budget, out=tmp_path / "run.json", tell=lines))
    assert len(run.variants[0].measured.passes) == 3
    (line,) = (line for line in lines if "a step in 3 passes" in line)
    assert line.startswith("eager: ")


def test_a_busy_machine_is_told_before_anything_is_measured(recipe, tmp_path, lines, monkeypatch):
    monkeypatch.setattr(os, "getloadavg", lambda: (64.0, 1.0, 1.0))
    cores = len(os.sched_getaffinity(0))
    capture(Options(recipe, ["eager"], steps=2, warmup=0, passes=1, out=tmp_path / "run.json", tell=lines))
    (at,) = (at for at, line in enumerate(lines) if f"warning: the machine is busy (load 64.0 on {cores} core" in line)
    assert at < lines.index("eager: measuring, unprofiled …")


def test_eager_and_compiled_compute_the_same(captured):
    _, run, said = captured
    eager, compiled = (variant.losses for variant in run.variants)
    assert len(eager) == 20
    assert len(set(eager)) > 10
    assert runs.divergence(eager, compiled) < 1e-4
    assert "same losses and gradients as eager" in said
    assert run.variants[0].metrics == {"metric": 0.5}


def test_it_says_what_happened_and_what_opens_it(captured):
    out, _, said = captured
    assert f"tracekit tui {out}" in said
    assert f"tracekit report {out}" in said
    assert "1 graph, 0 recompilations, 0 graph breaks" in said


def test_loading_shows_as_loading(captured):
    import gzip

    out, run, _ = captured
    with gzip.open(run.trace_path(out, run.variants[0])) as file:
        assert b'"enumerate(DataLoader)#batches.__next__"' in file.read()


def test_a_variant_that_fails_does_not_stop_the_others(write_recipe, tmp_path, lines):
    recipe, out = write_recipe(FAILING), tmp_path / "run.json"
    run = capture(Options(recipe, ["unsound", "sound"], steps=2, warmup=0, passes=1, out=out, tell=lines))
    assert [(variant.outcome, variant.error) for variant in run.variants] == [
        ("error", "measure: ValueError: the loss is gone"),
        ("ok", None),
    ]
    assert exit_code(run) == 1
    assert runs.read(out) == run
    assert 'raise ValueError("the loss is gone")' in lines.text()
    assert "tracekit/capture" not in lines.text()


def test_a_capture_of_failures_only_writes_nothing(write_recipe, tmp_path, lines):
    out = tmp_path / "run.json"
    earlier = write_earlier(out)
    with pytest.raises(NothingCapturedError, match="the loss is gone"):
        capture(Options(write_recipe(FAILING), ["unsound"], out=out, tell=lines))
    assert out.read_bytes() == earlier
    assert not [*tmp_path.glob("run-*")]


def test_data_is_prepared_once_with_the_parameters_given(write_recipe, tmp_path, lines):
    text = FAILING.replace("def setup", "def prepare(ctx):\n    ctx.note(f'sound is {ctx.sound}')\ndef setup")
    options = Options(write_recipe(text), ["eager"], params={"sound": "no"}, out=tmp_path / "run.json", tell=lines)
    preparation.prepare(options)
    assert "  sound is False" in lines
