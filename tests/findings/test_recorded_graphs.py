"""A CUDA graph that is recorded or prepared anew in each step costs that; one that is replayed does not."""

import pytest
from small import kernel, launch, op, step, write

from tracekit.findings import diagnose
from tracekit.profile import open_subject


def loop(path, replays=1, recorded_in=range(6)):
    """Steps of 10 ms: a graph is recorded for 4 ms and instantiated for 2 ms, and replayed for 0.5 ms at a time."""
    events = []
    for k in range(6):
        at, ids = 10_000.0 * k, iter(range(100 * k + 1, 100 * k + 100))
        events += [step(k, at, at + 9990), op("aten::mm", at, at + 9900)]
        if k in recorded_in:
            events += [
                launch(at + 10, at + 20, next(ids), "cudaStreamBeginCapture"),
                launch(at + 1000, at + 1010, next(ids)),  # runs nothing
                launch(at + 4000, at + 4010, next(ids), "cudaStreamEndCapture"),
                launch(at + 4010, at + 6010, next(ids), "cudaGraphInstantiateWithFlags"),
            ]
        for replay in range(replays):
            start, correlation = at + 6100 + 600 * replay, next(ids)
            events += [
                launch(start, start + 10, correlation, "cudaGraphLaunch"),
                kernel("gemm", start + 20, start + 520, correlation),
            ]
    return open_subject([write(path, *events)]).profiles[0]


def test_the_time_of_recording_is_claimed_and_told_by_no_other(tmp_path):
    findings = diagnose(loop(tmp_path / "t.json")).findings
    first = findings[0]
    assert first.id == "graphs_recorded"
    assert first.title.startswith("6 CUDA graphs recorded in 6 steps, none replayed twice")
    assert first.claimed_ns == pytest.approx(6_000_000, rel=0.01)
    assert "few sizes" in first.advice
    assert "cudaGraphInstantiate" not in " ".join(finding.title for finding in findings[1:])
    assert not any("Bring more" in finding.advice for finding in findings)


@pytest.mark.parametrize(("replays", "recorded_in"), [(5, range(6)), (1, range(1)), (1, range(0))])
def test_graphs_that_are_replayed_often_or_recorded_once_are_no_cause(tmp_path, replays, recorded_in):
    found = {finding.id for finding in diagnose(loop(tmp_path / "t.json", replays, recorded_in)).all_findings}
    assert "graphs_recorded" not in found


def sampled(path, new_sizes, replays=0):
    """Steps of 10 ms: compiled code prepares a graph for 3 ms, launches for 1 ms, and has 2 ms to do after that."""
    events = []
    for k in range(6):
        at = 10_000.0 * k
        events += [step(k, at, at + 9990), op("CompiledFunction", at + 1000, at + 7010)]
        if k < new_sizes:
            events.append(op("cudagraphify.get_container", at + 1010, at + 1200))
        for part in range(2):  # kernels
            start, correlation = at + 4010 + 990 * part, 10 * k + part + 1
            events += [launch(start, start + 10, correlation), kernel("gemm", start + 20, start + 120, correlation)]
        for replay in range(replays):
            start, correlation = at + 8000 + 500 * replay, 10 * k + replay + 5
            events += [
                launch(start, start + 10, correlation, "cudaGraphLaunch"),
                kernel("gemm", start + 20, start + 120, correlation),
            ]
    return open_subject([write(path, *events)]).profiles[0]


def test_what_preparing_graphs_for_new_sizes_takes_beside_its_launches_is_claimed_and_told_by_no_other(tmp_path):
    diagnosis = diagnose(sampled(tmp_path / "t.json", new_sizes=6))
    first = diagnosis.findings[0]
    assert (first.id, first.headline) == (
        "graphs_prepared",
        "6 CUDA graphs prepared in 6 steps, none replayed",
    )
    # From 1010 to 4010 µs, and from 5010 to 7010 but for the last kernel, which runs from 5020 to 5120.
    assert first.claimed_ns == pytest.approx(4_900_000, rel=0.001)
    assert "few sizes" in first.advice
    assert not any("the host in CompiledFunction" in finding.title for finding in diagnosis.all_findings)
    assert not any('mode="reduce-overhead"' in finding.advice for finding in diagnosis.all_findings)


@pytest.mark.parametrize(("new_sizes", "replays"), [(2, 0), (6, 2), (0, 0)])
def test_graphs_of_sizes_that_recur_are_no_cause(tmp_path, new_sizes, replays):
    found = {finding.id for finding in diagnose(sampled(tmp_path / "t.json", new_sizes, replays)).all_findings}
    assert "graphs_prepared" not in found
