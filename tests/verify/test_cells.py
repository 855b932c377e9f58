"""Cells that are really captured: inference as a workload, and the result for a recipe without inference."""

import os
from pathlib import Path

import pytest

from tests.study.ending import INFERS, TRAINS
from tracekit.profile import open_subject
from tracekit.study import read_study
from tracekit.sweep import SweepOptions, sweep

_OPTIONS = '[sweep.options]\nsteps = 3\nwarmup = 3\npasses = 1\nbackend = "aot_eager"\ntimeout = 60\n'


pytestmark = pytest.mark.skipif(not os.environ.get("TRACEKIT_VERIFY"), reason="TRACEKIT_VERIFY is not set: make verify")


def swept(folder, text):
    (folder / "trains.py").write_text(TRAINS)
    (folder / "infers.py").write_text(INFERS)
    (folder / "sweep.toml").write_text(f"{text}{_OPTIONS}")
    given = SweepOptions(file=folder / "sweep.toml", out=folder / "study", devices=("cpu",), tell=lambda _: None)
    return sweep(given), read_study(folder / "study").results


def test_inference_is_measured_like_training(tmp_path):
    text = '[sweep]\nrecipes = ["infers.py", "trains.py"]\nvariants = ["eager"]\nworkloads = ["inference"]\n'
    code, (infers, trains) = swept(tmp_path, text)
    assert (code, infers.outcome, trains.outcome) == (1, "ok", "skipped")
    assert "no infer()" in trains.record.error
    assert (infers.variant.workload, infers.variant.losses) == ("inference", [])
    (profile,) = open_subject([infers.folder / "run.json"]).profiles
    names = set(profile.trace.events["name"].to_pylist())
    assert "aten::linear" in names
    assert not any("Backward" in name or "Optimizer" in name for name in names)
    assert profile.answered["host"].any()


def test_failures_are_results(tmp_path):
    params = '[sweep.params]\nhow = ["oom", "crash", "hang", "well"]\n'
    text = f'[sweep]\nrecipes = ["infers.py"]\nvariants = ["eager"]\n{params}'
    code, results = swept(tmp_path, text)
    assert code == 1
    assert [each.outcome for each in results] == ["oom", "crash", "timeout", "ok"]
    assert "3.00 GiB" in results[0].record.error
    assert "SIGSEGV" in results[1].record.error
    assert Path(results[3].folder, "run.json").is_file()
