"""Passes are taken until a check of two such captures would see what was requested, or the budget is used up."""

import math
import random
from types import SimpleNamespace

import pytest

from tracekit.capture import harness, messages, rounds
from tracekit.capture.job import PassResult
from tracekit.capture.options import Options
from tracekit.capture.rounds import Rounds, detectable, seconds_for_rounds
from tracekit.cli import main
from tracekit.run import Measured, Pass, Requested, Run, Variant


def measured(number, step_ns):
    passes = [Pass(round=number, started_ns=number, step_ns=step_ns, step_all_ns=[step_ns] * 3)]
    return Measured(step_ns=step_ns, step_all_ns=[step_ns] * 3, spread_ns=0, clock="perf_counter", passes=passes)


@pytest.fixture
def captured(monkeypatch):
    """A function that makes rounds of one variant whose passes differ by some share, and returns the last run."""

    def capture(spread, **options):
        rng = random.Random(1)

        def step_ns():
            return round(10e6 * math.exp(rng.gauss(0, spread)))

        def another(number, *_, **__):
            return PassResult(measured=measured(number, step_ns()))

        monkeypatch.setattr(rounds, "measure_again", another)
        variant = Variant(name="a", outcome="ok", requested=Requested(compile=False), measured=measured(0, step_ns()))
        run = Run(created="", tracekit="", recipe="", script="", variants=[variant])
        prepared = SimpleNamespace(variants=[SimpleNamespace(name="a")])
        *_, last = Rounds(prepared, None, {"a": None}, Options("", **{"budget": 60, **options})).runs(run)
        return last

    return capture


def passes(run):
    return len(run.variants[0].measured.passes)


def test_more_passes_are_taken_the_less_must_be_hidden(captured):
    usual, precise = captured(0.02), captured(0.02, min_detectable=0.06, passes=100)
    assert detectable(usual) > 0.06 >= detectable(precise)
    assert passes(usual) < passes(precise) < 100


def test_it_says_what_was_reached(captured):
    noisy = captured(0.1, min_detectable=0.05, passes=8)
    assert passes(noisy) == 8
    smallest = detectable(noisy)
    assert f"of {smallest * 100:.1f} %, not of 5.0 %" in messages.reached(smallest, 0.05)
    assert messages.reached(0.048, 0.05) == "A check of two such captures would see regressions of 4.8 %."
    assert "one pass does not show" in messages.reached(math.inf, 0.05)


@pytest.mark.parametrize(("given", "threads"), [([], 0), (["--min-detectable", "5%"], 0), (["--threads", "4"], 4)])
def test_a_capture_chooses_no_threads_by_itself(monkeypatch, given, threads):
    asked = []
    monkeypatch.setattr(harness, "capture", lambda options: asked.append(options) or SimpleNamespace(variants=[]))
    assert main(["capture", "train.py", *given]) == 0
    assert asked[0].threads == threads


def test_no_time_is_left_unused_unless_a_budget_says_so(captured):
    run = captured(0.0)
    assert seconds_for_rounds(run, Options("", min_detectable=0.05)) == 600
    assert seconds_for_rounds(run, Options("", min_detectable=0.05, budget=7.0)) == 7
    assert seconds_for_rounds(run, Options("")) == 60
