"""The results of a pass before it failed are stored with the failure."""

import time

import pytest

from tests.capture.capturing import perform, read_trace
from tracekit import run as runs
from tracekit.capture import process
from tracekit.capture.harness import Options, capture
from tracekit.capture.job import SO_FAR

# The profiled pass takes 3 cold steps, 5 to settle, 2 + 3 steady ones, then 1 + 3 of the detail trace.
RECIPE = """
import os, time
from types import SimpleNamespace
import torch
def setup(ctx):
    weight, taken = torch.zeros(3, requires_grad=True), []
    def step():
        taken.append(1)
        if len(taken) == LAST:
            ENDING
        loss = weight.square().sum()
        loss.backward()
        return loss.detach()
    return step
"""
ENDINGS = {
    "oom": "torch.empty(1 << 60)",
    "error": "raise ValueError('no more')",
    "crash": "os.abort()",
    "timeout": "time.sleep(999)",
}


def profile(tmp_path, write_recipe, outcome, last, timeout=120):
    text = RECIPE.replace("LAST", str(last)).replace("ENDING", ENDINGS[outcome])
    return perform(tmp_path, "profile", write_recipe(text), timeout=timeout, steps=3, warmup=5)


@pytest.mark.parametrize("outcome", ["oom", "error", "crash"])
def test_a_failure_in_the_detail_window_leaves_the_other_traces(tmp_path, write_recipe, outcome):
    result = profile(tmp_path, write_recipe, outcome, last=15)
    assert result.outcome == outcome
    assert result.error
    assert (result.traces.cold, result.traces.steady, result.traces.detail) == ("cold.json.gz", "steady.json.gz", None)
    assert result.profiled.steps == 3
    assert [*read_trace(tmp_path / "steady.json.gz").steps] == [10, 11, 12]


def test_one_that_takes_too_long_leaves_what_it_had(tmp_path, write_recipe, monkeypatch):
    """The time limit ends as soon as the pass has left something, so that the test does not depend on a clock."""

    def wait(processes, timeout, reader):
        while not reader._file.with_name(SO_FAR).exists():
            time.sleep(0.05)
        raise TimeoutError

    monkeypatch.setattr(process, "_wait", wait)
    result = profile(tmp_path, write_recipe, "timeout", last=6, timeout=40)
    assert (result.outcome, result.error, result.traces.cold) == ("timeout", "took longer than 40 s", "cold.json.gz")


def test_one_that_fails_at_once_leaves_nothing_of_an_earlier_pass(tmp_path, write_recipe):
    result = profile(tmp_path, write_recipe, "error", last=1)
    assert (result.error, result.traces.cold) == ("ValueError: no more", None)


def test_the_other_passes_are_taken_all_the_same(tmp_path, write_recipe):
    text = RECIPE.replace("len(taken) == LAST", "torch.autograd._profiler_enabled() and len(taken) == 15")
    path, out = write_recipe(text.replace("ENDING", ENDINGS["oom"])), tmp_path / "run.json"
    capture(Options(path, ["eager"], device="cpu", steps=3, warmup=5, out=out, tell=lambda line: None))
    (variant,) = runs.read(out).variants
    assert (variant.outcome, variant.error[:22]) == ("oom", "profile: RuntimeError:")
    assert variant.measured
    assert (bool(variant.traces.steady), variant.traces.detail, len(variant.losses)) == (True, None, 20)


def test_inference_that_fails_costs_only_itself(tmp_path, write_recipe):
    text = RECIPE.replace("len(taken) == LAST", "False").replace("ENDING", "pass")
    text = text.replace("return step\n", "return SimpleNamespace(step=step, infer=lambda: torch.empty(1 << 60))\n")
    result = perform(tmp_path, "measure", write_recipe(text))
    assert (result.outcome, result.error[:22]) == ("oom", "infer(): RuntimeError:")
    assert result.measured.steps >= 30
    assert result.measured.infer_ns is None
