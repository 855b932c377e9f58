"""Work that is queued and does not start is no work of the GPU, no launch latency and no gap of a busy stream."""

import pytest
from small import event, kernel, launch, op, step, write

from tracekit.base.units import percent
from tracekit.findings import diagnose
from tracekit.findings.rules.queued_not_started import queued_not_started
from tracekit.findings.verdict import as_finding
from tracekit.profile import open_subject

WAIT = 900.0


def waiting(path, *more, wait=WAIT, kernels=3, contexts=(1,), last=20.0, steps=3):
    """Steps that submit kernels of 20 µs at once; before the last one, the GPU does nothing for a while."""
    events, at, correlation = [op("aten::empty", -20, -10)], 0.0, 0
    for number in range(steps):
        free, begun = at + 20, at
        for k in range(kernels):
            correlation += 1
            events.append(launch(at + 2 * k, at + 2 * k + 2, correlation))
            free += wait if k == kernels - 1 else 1
            lasts = last if k == kernels - 1 else 20.0
            made = kernel("gemm", free, free + lasts, correlation)
            made["args"]["context"] = contexts[correlation % len(contexts)]
            events.append(made)
            free += lasts
        events.append(launch(at + 2 * kernels, free, 0, "cudaDeviceSynchronize"))
        at = free
        events.append(step(number, begun, at))
    return open_subject([write(path, *events, *more)]).profiles[0]


def test_a_gpu_that_hardly_works_does_not_set_the_pace(tmp_path):
    profile = waiting(tmp_path / "t.json")
    verdict = diagnose(profile).verdict
    assert verdict.id == "queued_not_started"
    assert verdict.share == pytest.approx(WAIT / 982, abs=0.005)
    assert verdict.sentence.startswith(
        "Queued work does not start, before gemm. The GPU idles for 900 µs of 982 µs a step"
    )
    (finding,) = (each for each in diagnose(profile).all_findings if each.id == "queued_not_started")
    assert finding.cost_ns == pytest.approx(900_000)
    assert {each.name for each in finding.evidence} == {"gemm"}
    assert not [each for each in diagnose(profile).findings if each.id.startswith("gpu_bound")]


@pytest.mark.parametrize("wait", [2, 29])
def test_short_gaps_are_the_pace_of_the_gpu(tmp_path, wait):
    profile = waiting(tmp_path / "t.json", wait=wait, kernels=40)
    assert not [*queued_not_started(profile)]
    verdict = diagnose(profile).verdict
    busy, gaps = (profile.parts[key] / sum(profile.parts.values()) for key in ("gpu_compute", "gpu_gap"))
    assert verdict.id.startswith("gpu_bound")
    assert verdict.share == pytest.approx(busy + gaps)
    work, _, rest = verdict.sentence.partition("a step")
    assert f" {percent(busy)} of" in work  # gaps are not called work, and nothing is saved by less of it
    assert rest.startswith(f", and gaps between queued kernels another {percent(gaps)};")
    work = as_finding(profile, verdict, [])
    assert work.claimed_ns == pytest.approx(busy * sum(profile.parts.values()))
    assert work.cost_ns < work.claimed_ns  # the launches, 80 µs a step, take their time all the same


def test_launch_latency_is_not_such_a_wait(tmp_path):
    events = [step(0, 0, 1000)]
    for k in range(5):
        at = 200 * k
        events += [launch(at + 5, at + 15, k + 1), kernel("gemm", at + 40, at + 60, k + 1)]  # 25 µs after its call
    assert not [*queued_not_started(open_subject([write(tmp_path / "t.json", *events)]).profiles[0])]


def clues(profile):
    (finding,) = queued_not_started(profile)
    shown, _, excluded = finding.why.partition("Ruled out: ")
    return shown, excluded


def test_nothing_recorded_explains_it(tmp_path):
    shown, excluded = clues(waiting(tmp_path / "t.json"))
    assert "Nothing in this recording explains it" in shown
    assert all(word in excluded for word in ("unrecorded work", "contexts", "throttled", "priorities"))


def test_launches_without_recorded_work(tmp_path):
    lost = [launch(982 * k + 3.1, 982 * k + 3.9, 90 + k) for k in range(3)]
    profile = waiting(tmp_path / "t.json", *lost)
    assert not [finding for finding in diagnose(profile).findings if finding.id == "queued_not_started"]
    assert any("launches have no work in the trace" in breach.message for breach in profile.trace.health)


def test_two_contexts_that_take_turns(tmp_path):
    shown, excluded = clues(waiting(tmp_path / "t.json", contexts=(1, 1, 2)))
    assert "3 of them lie between work of two contexts" in shown
    assert "contexts" not in excluded


def test_a_clock_that_drops(tmp_path):
    shown, excluded = clues(waiting(tmp_path / "t.json", last=60.0))
    assert "Kernels after a wait take 3.0 × their usual time" in shown
    assert "throttled" not in excluded


def test_the_profiler_that_works_meanwhile(tmp_path):
    flush = [event("overhead", "Buffer Flush", 982 * k + 100, 982 * k + 900, tid=0, pid=-1) for k in range(3)]
    shown, _ = clues(waiting(tmp_path / "t.json", *flush))
    assert "The profiler's own work covers 88.9 % of them" in shown


def test_a_function_that_the_host_runs_for_the_stream(tmp_path):
    calls = [launch(982 * k + 3.1, 982 * k + 3.9, 0, "cudaLaunchHostFunc") for k in range(3)]
    shown, _ = clues(waiting(tmp_path / "t.json", *calls))
    assert "Before 3, the stream was told to run a function on the host" in shown
