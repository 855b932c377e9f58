"""No step can save more than it takes while nobody records it, however much the profiler stretches it."""

from __future__ import annotations

import re
import shutil
from itertools import starmap
from pathlib import Path

import pytest
from real import trace_names, trace_path

from tests.world.captures import capture
from tests.world.machine import Recorder
from tests.world.worlds import world
from tracekit import run as runs
from tracekit.findings import diagnose
from tracekit.profile import Profile, open_subject
from tracekit.report import report
from tracekit.report.sections.findings import cost
from tracekit.run import Measured, Requested, Run, Traces, Variant

UNITS = {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9}
SAVED = re.compile(r"saves? at most ([\d.,]+) (ns|µs|ms|s)\b")
ROUNDED = 1.006  # a figure of three digits


def bounded(profile: Profile) -> None:
    assert profile.variant is not None
    assert profile.variant.measured is not None
    most = profile.variant.measured.step_ns
    findings = [each for each in diagnose(profile).all_findings if each.cost_ns is not None and not each.over_steps]
    assert sum(each.cost_ns or 0.0 for each in findings) <= most * (1 + 1e-9)
    for finding in findings:
        assert (finding.share or 0.0) <= 1 + 1e-9
        said = [float(number.replace(",", "")) * UNITS[unit] for number, unit in SAVED.findall(finding.advice)]
        assert all(saved <= most * ROUNDED for saved in said), finding.advice


def as_run(folder: Path, trace: Path, step_ns: int) -> Path:
    """A run with this trace, whose unprofiled steps are that long."""
    variant = Variant(
        name="eager",
        outcome="ok",
        requested=Requested(compile=False),
        traces=Traces(steady=trace.name),
        measured=Measured(step_ns=step_ns, step_all_ns=[step_ns] * 20, spread_ns=0, clock="perf_counter"),
    )
    shutil.copy(trace, folder)
    runs.write(
        Run(created=runs.now(), tracekit="0", recipe="r", script="r.py", variants=[variant]), folder / "run.json"
    )
    return folder / "run.json"


@pytest.mark.parametrize("name", trace_names())
def test_no_cost_of_a_real_trace_exceeds_the_unprofiled_step(tmp_path: Path, name: str) -> None:
    mean = open_subject([trace_path(name)]).profiles[0].mean
    if mean is None:
        pytest.skip("none of its steps can be timed")
    (profile,) = open_subject([as_run(tmp_path, trace_path(name), max(int(mean.step_ns * 0.3), 1))]).profiles
    bounded(profile)


@pytest.mark.parametrize("seed", range(24))
def test_no_cost_exceeds_the_unprofiled_step(tmp_path: Path, seed: int) -> None:
    path = capture(tmp_path, {"eager": world(seed)}, Recorder(), {"eager": 0.25})
    for profile in open_subject([path]).profiles:  # none for a world of two ranks, whose traces are a folder
        bounded(profile)


def test_a_cost_says_which_step_it_is_of(tmp_path: Path) -> None:
    stretched, plain = (
        report(open_subject([capture(folder, {"eager": world(3)}, Recorder(), {"eager": factor})]))
        for folder, factor in starmap(_folder, ((tmp_path / "a", 0.25), (tmp_path / "b", 1.1)))
    )
    (first, *_), (other, *_) = (made.diagnoses["eager"].findings for made in (stretched, plain))
    assert first.id == other.id
    assert first.cost_ns == pytest.approx((other.cost_ns or 0.0) * 0.25, rel=0.05)
    assert " unprofiled (" in cost(first)
    assert " a step (" in cost(other)
    assert any("Costs are scaled down to the unprofiled step." in note.text for note in stretched.notes)


def _folder(path: Path, factor: float) -> tuple[Path, float]:
    path.mkdir()
    return path, factor
