"""A study of two models on two data sets, with a twin, whose cells cost what a formula says."""

import os

import pytest

from tests.study.planting import sweep_file, write_run
from tracekit.errors.capturing import NothingCapturedError
from tracekit.run import Memory
from tracekit.sweep import SweepOptions, runner, sweep

GRID = """
[sweep]
recipes = ["net.py"]
variants = ["eager", "compiled", "compiled:dynamic=true", "compiled:dynamic=false"]
seeds = [0, 1]
workloads = ["training", "inference"]
labels = { framework = "pyg" }

[[sweep.grid]]
params = { model = ["gcn", "gat"], dataset = ["cora", "=1+1"], loops_ahead = [false, true] }

[[sweep.grid]]
recipes = ["twin.py"]
params = { model = ["gcn"] }
labels = { framework = "dgl", recipe = "net", dataset = "cora", loops_ahead = "false" }
"""
BASE = {"gcn": 10, "gat": 20}
FACTOR = {"eager": 1, "compiled": 0.8, "compiled:dynamic=true": 0.9, "compiled:dynamic=false": 0.6}


def step_ms(options):
    given = {"model": "gcn", "dataset": "cora", "loops_ahead": "false", **options.params}
    variant = options.variants[0]
    ms = BASE[given["model"]] * FACTOR[variant] * (4 if given["dataset"] != "cora" else 1)
    ms *= 0.5 if given["loops_ahead"] == "true" and variant != "eager" else 1
    ms *= 0.25 if options.workload == "inference" else 1
    ms *= 1.5 if options.program.stem == "twin" else 1
    return ms * (1.02 if options.seed else 1)


def capture(options):
    given, variant = options.params, options.variants[0]
    if given["model"] == "gat" and given.get("dataset") != "cora" and variant == "compiled:dynamic=false":
        raise NothingCapturedError(options.program, "measure: OutOfMemoryError: =cmd|' /C calc'!A0", "oom")
    mib = 200 if variant == "eager" else 300
    return write_run(
        options,
        step_ms(options),
        compile_s=0 if variant == "eager" else 30,
        memory=Memory(start_rss_bytes=100 << 20, step_peak_rss_bytes=(100 + mib) << 20, host_peak_rss_bytes=1 << 30),
        accuracy=0.8 if options.workload == "training" else None,
        epoch_steps=5 if options.workload == "training" else None,
    )


def plant(folder):
    """Write the study. Returns its folder."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(runner, "capture", capture)
        patched.setattr(os, "fsync", lambda _: None)  # planted files need not survive a crash
        (folder / "twin.py").write_text("def setup(ctx):\n    return lambda: None\n")
        sweep(SweepOptions(file=sweep_file(folder, GRID), out=folder / "study", tell=lambda _: None))
    return folder / "study"
