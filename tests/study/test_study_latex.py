"""The tables of a study for a paper: compiled, with names that TeX would obey, and with rows for many pages."""

import json
import os

import pytest

from tests.faces.typesetting import faults, typeset, with_pdflatex
from tests.study.planting import sweep_file, write_run
from tracekit.cli import main
from tracekit.errors.capturing import NothingCapturedError
from tracekit.run import Memory
from tracekit.sweep import SweepOptions, runner, sweep

HOSTILE = [r"a_b%c&d#e$f~g^h\\input{secret}", "[2pt] µ × Δ ± 日本", "* {unbalanced", "x" * 200, "-- ''`` ?` !` <<>>"]
GRID = f"""
[sweep]
recipes = ["net.py"]
variants = ["eager", "compiled", "compiled:dynamic=true", "max-autotune-no-cudagraphs:dynamic=false"]
workloads = ["training", "inference"]

[sweep.params]
dataset = {json.dumps(HOSTILE, ensure_ascii=False)}
"loops_%_ahead" = [false, true]
scale = [1.0, 0.25]
"""


def capture(options):
    variant = options.variants[0]
    if variant.startswith("max") and options.params["scale"] == "1.0":
        raise NothingCapturedError(
            options.program, r"measure: OutOfMemoryError: 50 % of \undefined & #1 $x$ ^_^", "oom"
        )
    memory = Memory(start_rss_bytes=100 << 20, step_peak_rss_bytes=300 << 20, host_peak_rss_bytes=1 << 30)
    step_ms = 10 if variant == "eager" else 7
    return write_run(options, step_ms, compile_s=30 * (variant != "eager"), memory=memory, accuracy=0.8, epoch_steps=5)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study_latex")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(runner, "capture", capture)
        patched.setattr(os, "fsync", lambda _: None)  # planted files need not survive a crash
        sweep(SweepOptions(file=sweep_file(folder, GRID), out=folder / "study", tell=lambda _: None))
    return folder / "study"


@with_pdflatex
@pytest.mark.parametrize("options", [[], ["--full"]], ids=["short", "full"])
def test_all_tables_stand_on_the_page(study, tmp_path, options):
    assert main(["report", str(study), "--format", "latex", *options, "-o", str(tmp_path / "study.tex")]) == 0
    content = (tmp_path / "study.tex").read_text()
    assert r"\begin{longtable}" in content
    assert r"\input" not in content
    assert faults(typeset(tmp_path, "study.tex")) == []
