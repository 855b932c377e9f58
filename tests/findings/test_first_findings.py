"""The verdict and the first culprit of each real trace, compared with what people concluded from the raw events."""

import tomllib
from pathlib import Path

import pytest
from real import trace_names, trace_path

from tests.findings.pointing import points_at_events
from tracekit.findings import diagnose
from tracekit.profile import open_subject
from tracekit.profile.grouping import kernel_times

JUDGED = tomllib.loads((Path(__file__).parent / "first_findings.toml").read_text())


def test_every_trace_is_judged():
    if not trace_names():
        pytest.skip("the real traces are not here; set TRACEKIT_TRACES")
    assert {*trace_names()} == {*JUDGED}
    assert all(len(judged["why"].strip().splitlines()) >= 3 for judged in JUDGED.values())


@pytest.mark.parametrize("name", JUDGED)
def test_the_verdict_is_the_one_that_the_raw_events_tell(name):
    judged = JUDGED[name]
    profile = open_subject([trace_path(name)]).profiles[0]
    diagnosis = diagnose(profile)
    assert diagnosis.verdict.id == judged["verdict"]
    first = diagnosis.findings[0] if diagnosis.findings else None
    assert first is None or first.id == diagnosis.verdict.id
    assert judged.get("culprit", "") in str(first.where if first is not None else diagnosis.verdict.where)
    assert diagnosis.verdict.share == (pytest.approx(judged["share"], abs=0.02) if "share" in judged else None)
    for finding in diagnosis.all_findings:
        points_at_events(profile, finding)
    if "products" in judged:
        assert _products(profile) == pytest.approx(judged["products"], abs=0.02)


def _products(profile):
    kernels = [
        each for each in kernel_times(profile) if each.label != "communication" and not each.name.startswith("Mem")
    ]
    of_products = sum(each.step_ns for each in kernels if each.label in ("matmul", "convolution"))
    return of_products / sum(each.step_ns for each in kernels)
