"""What a step would save without a cause: known answers, small enough to check by eye."""

import numpy as np
import pytest
from real import trace_names, trace_path
from small import event, kernel, launch, op, step, write

from tracekit.findings import diagnose, saving
from tracekit.findings.counted import Steps
from tracekit.findings.finding import Finding
from tracekit.findings.kernels import kernels, time_of
from tracekit.findings.ranking import ranked
from tracekit.findings.saving import Savings
from tracekit.profile import open_subject

US = 1000.0


def savings(profile):
    return Savings(profile, Steps.of(profile))


def idle(profile, *buckets):
    pieces = profile.attribution.pieces
    return pieces.union(pieces.of(*buckets))


def every_kernel(profile):
    return time_of(profile, kernels(profile, lambda events: events.roles.gpu))


def submitting(path, kernel_us, host_us=100, number=5, steps=4):
    """Operators of `host_us`, each of which launches a kernel after 10 µs; the host waits at the end of each step."""
    events, at, free = [], 0.0, 0.0
    for k in range(steps):
        begin = at
        for n in range(number):
            events += [op("aten::mm", at, at + host_us), launch(at + 10, at + 15, 100 * k + n + 1)]
            start = max(at + 15, free)
            free = start + kernel_us
            events.append(kernel("gemm", start, free, 100 * k + n + 1))
            at += host_us
        done = max(at, free) + 5
        events += [launch(at, done, 0, "cudaDeviceSynchronize"), step(k, begin, done)]
        at = done
    return open_subject([write(path, *events)]).profiles[0]


def test_work_of_the_gpu_is_free_where_the_host_is_slower(tmp_path):
    profile = submitting(tmp_path / "a.json", kernel_us=80)
    claim = every_kernel(profile)
    assert Steps.of(profile).mean(claim) == 400 * US
    saved = savings(profile).of(claim)
    assert saved.step_ns == 0  # the last operator takes 5 µs longer than its kernel
    assert saved.bound is None
    slower = submitting(tmp_path / "b.json", kernel_us=95)
    assert savings(slower).of(every_kernel(slower)).step_ns == 10 * US  # it ends 10 µs after the last operator


def test_the_host_is_free_where_the_gpu_is_slower(tmp_path):
    profile = submitting(tmp_path / "a.json", kernel_us=200)
    claim = every_kernel(profile)
    assert Steps.of(profile).mean(claim) == 1000 * US
    saved = savings(profile).of(claim)
    assert saved.step_ns == 515 * US  # of 1,015 µs: five operators of 100 µs are left, and the kernel of the last
    assert saved.bound == "host"


@pytest.mark.parametrize("returns", [35, 40, 50])
def test_the_host_bounds_no_step_in_which_nothing_but_the_gpus_work_is_left(tmp_path, returns):
    events = []
    for number, at in enumerate(range(0, 2000, 50), 1):
        events += [
            op("aten::mm", at, at + returns),
            launch(at + 30, at + 34, number),
            kernel("gemm", at + 37, at + 42, number),
        ]
    events += [step(k, 500 * k, 500 * (k + 1)) for k in range(4)]
    (finding,) = diagnose(open_subject([write(tmp_path / "a.json", *events)]).profiles[0]).findings
    # Of 50 µs the kernel takes 5, and the gap to the next one 1: no kernel was queued, so the usual one is left.
    assert (finding.id, finding.share) == ("dispatch_bound", pytest.approx(0.88, abs=0.005))
    assert finding.then == "without this cause, the GPU's work would bound the step"


def test_what_keeps_the_gpu_waiting_is_saved(tmp_path):
    profile = submitting(tmp_path / "a.json", kernel_us=80)
    claim = idle(profile, "dispatch", "kernel_launch")
    saved = savings(profile).of(claim)
    # The kernels of a step then follow one another, with the usual gap of 1 µs.
    assert saved.step_ns == Steps.of(profile).mean(claim) - 4 * US > 80 * US


def test_gaps_between_queued_kernels_are_not_saved_with_the_host(tmp_path):
    """Operators of 200 µs launch two kernels of 40 µs, the second of which starts 10 µs after the first has ended. If
    the host took no time, the first would start 10 µs after the second before it, at best: of 110 µs, 100 are saved."""
    events = []
    for k in range(20):
        at, n = 200.0 * k, 2 * k + 1
        events += [op("aten::mm", at, at + 199), launch(at + 10, at + 14, n), launch(at + 15, at + 19, n + 1)]
        events += [kernel("gemm", at + 16, at + 56, n), kernel("relu", at + 66, at + 106, n + 1)]
    events += [step(k, 1000 * k, 1000 * (k + 1)) for k in range(4)]
    profile = open_subject([write(tmp_path / "a.json", *events)]).profiles[0]
    claim = idle(profile, "dispatch")
    saved = savings(profile).of(claim)
    assert saved.bound == "gpu"
    assert Steps.of(profile).mean(claim) == pytest.approx(5 * 104 * US, rel=0.01)
    assert saved.step_ns == pytest.approx(5 * 100 * US, rel=0.01)


@pytest.mark.parametrize("returns", [37, 45, 50])
def test_what_bounds_the_step_fits_the_cost_beside_it(tmp_path, returns):
    """Of 50 µs each, two kernels of 5 µs are left, and a gap of 2 µs after each, of which the claim holds one."""
    events = []
    for number, at in enumerate(range(0, 2000, 50), 1):
        events += [
            op("aten::mm", at, at + returns),
            launch(at + 30, at + 33, 2 * number),
            launch(at + 33, at + 36, 2 * number + 1),
            kernel("gemm", at + 37, at + 42, 2 * number),
            kernel("gemm", at + 44, at + 49, 2 * number + 1),
        ]
    events += [step(k, 500 * k, 500 * (k + 1)) for k in range(4)]
    finding = diagnose(open_subject([write(tmp_path / "a.json", *events)]).profiles[0]).findings[0]
    assert finding.id == "dispatch_bound"
    assert finding.cost_ns == pytest.approx(finding.claimed_ns - 10 * 2 * US, abs=US)
    assert finding.then == "without this cause, the GPU's work would bound the step"


def test_without_steps_it_is_the_recording_that_is_bounded(tmp_path):
    events = [
        each
        for n in range(1, 8)
        for each in (
            op(f"aten::op{n}", 300 * n, 300 * n + 250 + n * n),
            launch(300 * n + 10, 300 * n + 15, n),
            kernel(f"k{n}", 300 * n + 16, 300 * n + 40 * n, n),
        )
    ]
    found = diagnose(open_subject([write(tmp_path / "a.json", *events)]).profiles[0]).findings
    assert found
    assert all(finding.of_recording for finding in found)
    then = [finding.then for finding in found if finding.then]
    assert then
    assert all(each.endswith("the recording") for each in then)


@pytest.mark.parametrize("stacks", [False, True])
def test_the_lead_with_which_a_recording_starts_is_not_saved_again(tmp_path, stacks):
    """The host takes 60 µs a step, the GPU 100 µs; when the first of four steps is issued, it has 500 µs left to do."""
    events = [launch(0, 5, 1), kernel("gemm", 5, 510, 1)]
    for k in range(4):
        at, ran = 10.0 + 60 * k, 510.0 + 100 * k
        events += [op("aten::mm", at, at + 59), launch(at + 10, at + 15, k + 2), step(k, at, at + 60)]
        events.append(kernel("gemm", ran, ran + 100, k + 2))
        if stacks:
            events.append(event("python_function", "train.py(3): step", at, at + 59.5))
    profile = open_subject([write(tmp_path / "a.json", *events)]).profiles[0]
    claim = every_kernel(profile)
    assert Steps.of(profile).mean(claim) == 100 * US
    saved = savings(profile).of(claim)
    assert saved.step_ns == pytest.approx(40 * US, rel=0.02)  # it cannot issue steps faster than before
    assert saved.bound == "host"
    finding = Finding("without_tensor_cores", "Slow kernels", 100 * US, "", "", claim=claim)
    (with_costs,) = ranked(profile, [finding])
    assert ("may save more" in with_costs.why) is stacks


def waiting(path, python=50, steps=3):
    """Two kernels of 100 µs a step. The host waits for the first, and then submits the second after some Python."""
    events = []
    for k in range(steps):
        at = (230.0 + python) * k
        second = at + 120 + python
        events += [
            launch(at, at + 5, 2 * k + 1),
            kernel("gemm", at + 5, at + 105, 2 * k + 1),
            launch(at + 10, at + 110, 0, "cudaStreamSynchronize"),
            op("aten::mm", at + 110, second),
            launch(second, second + 5, 2 * k + 2),
            kernel("gemm", second + 5, second + 105, 2 * k + 2),
            launch(second + 10, second + 110, 0, "cudaDeviceSynchronize"),
            step(k, at, second + 110),
        ]
    return open_subject([write(path, *events)]).profiles[0]


def test_without_a_wait_the_queue_never_runs_dry(tmp_path):
    profile = waiting(tmp_path / "a.json")
    pieces = profile.attribution.pieces
    (first, *_) = sorted(row for row in set(pieces.event[pieces.of("sync_stall")].tolist()) if row >= 0)
    claim = pieces.union(pieces.of("sync_stall") & (pieces.event == first))
    saved = savings(profile).of(claim)
    # The GPU idles from 105 to 175 µs; without the wait, the second kernel follows the first at once, in one step of 3.
    assert saved.step_ns == pytest.approx(70 * US / 3, rel=0.02)
    assert saved.step_ns > Steps.of(profile).mean(claim)
    assert saved.bound == "gpu"


def test_of_a_long_trace_the_steps_that_cost_most_are_replayed(tmp_path, monkeypatch):
    profile = submitting(tmp_path / "a.json", kernel_us=200, steps=40)
    claim = every_kernel(profile)
    whole = savings(profile).of(claim)
    monkeypatch.setattr(saving, "_MAX_NODES", 60)
    assert len(savings(profile)._stretches) == 37
    part = savings(profile).of(claim)
    assert part.step_ns == pytest.approx(whole.step_ns, rel=0.02)
    assert part.bound == whole.bound


def test_what_the_host_does_beside_a_busy_gpu_is_part_of_the_cause(tmp_path):
    """Python of 300 µs, of which the GPU has work for 100 µs; the kernels after it are submitted one by one."""
    events = []
    for k in range(4):
        at = 440.0 * k
        events += [launch(at, at + 5, 4 * k + 1), kernel("gemm", at + 5, at + 105, 4 * k + 1)]
        events.append(op("my::python", at + 5, at + 305))
        for n in range(3):
            begun = at + 305 + 40 * n
            events += [op("aten::mm", begun, begun + 35), launch(begun + 30, begun + 35, 4 * k + 2 + n)]
            events.append(kernel("gemm", begun + 35, begun + 55, 4 * k + 2 + n))
        events += [launch(at + 425, at + 440, 0, "cudaDeviceSynchronize"), step(k, at, at + 440)]
    profile = open_subject([write(tmp_path / "a.json", *events)]).profiles[0]
    pieces = profile.attribution.pieces
    names = np.array(profile.trace.names)[profile.trace.name_codes]
    claim = pieces.union(pieces.of("dispatch") & (names[pieces.event] == "my::python"))
    assert Steps.of(profile).mean(claim) == 200 * US
    # Without it, 160 of the 440 µs are left: the GPU's 100, and then the last of three kernels, which the host submits
    # meanwhile; they and the wait at the end take 75 µs.
    assert savings(profile).of(claim).step_ns == pytest.approx(265 * US, rel=0.05)


def test_a_removed_delay_lets_no_kernel_start_before_the_one_before_it_ends(tmp_path):
    profile = submitting(tmp_path / "a.json", kernel_us=95)
    claim = idle(profile, "dispatch", "kernel_launch")
    step = Steps.of(profile).length
    assert savings(profile).of(claim).step_ns <= step - 5 * 95 * US


@pytest.mark.parametrize("name", trace_names())
def test_costs_add_up_to_no_more_than_the_step(name):
    profile = open_subject([trace_path(name)]).profiles[0]
    findings = [each for each in diagnose(profile).all_findings if each.cost_ns is not None and not each.once]
    assert sum(each.share or 0.0 for each in findings) <= 1 + 1e-9
    assert all(each.cost_ns > 0 for each in findings)


@pytest.mark.traces
def test_what_a_cuda_graph_saved_is_within_what_is_said_of_it():
    """One model, eager and as a CUDA graph: the host's time, and at most the gaps between kernels besides."""
    eager, graph = (
        open_subject([trace_path(name)]).profiles[0]
        for name in ("leimao_eager_rtx5080", "leimao_cudagraph_manual_rtx5080")
    )
    finding = next(each for each in diagnose(eager).findings if each.id == "dispatch_bound")
    gaps = eager.parts["gpu_gap"]
    saved = eager.means["wall"].step_ns - graph.means["wall"].step_ns
    assert 0.9 * finding.cost_ns <= saved <= finding.cost_ns + gaps
    assert finding.do.endswith(
        "CUDA graphs may also shorten the gaps between kernels, by another 204 µs a step at most."
    )
    assert finding.then == "without this cause, the GPU's work would bound the step"


def test_only_what_the_cause_does_on_the_host_goes_where_that_is_known(tmp_path):
    """A loop in an annotation that begins after a long stretch of Python: without the loop, the stretch stays."""
    events, at = [], 0.0
    for number in range(4):
        begun, loop = at, at + 3_000
        calls = [(loop + 20 + 15 * k, 1 + 100 * number + k) for k in range(100)]
        events += [op("aten::zero_", call - 5, call + 6) for call, _ in calls]
        events += [launch(call, call + 4, ids) for call, ids in calls]
        events += [kernel("fill", call + 6, call + 8, ids) for call, ids in calls]
        at = loop + 20 + 15 * 100
        events.append(event("user_annotation", "Optimizer.zero_grad#AdamW.zero_grad", loop, at))
        events.append(step(number, begun, at))
    profile = open_subject([write(tmp_path / "t.json", *events)]).profiles[0]
    (loop_finding,) = (each for each in diagnose(profile).all_findings if each.id == "zero_grad")
    assert loop_finding.cost_ns == pytest.approx(1_500 * US, rel=0.05)


def running_ahead(path, since=0.0, steps=6):
    """In each step, operators of 100 µs launch five kernels of 120 µs each; the host never waits for them."""
    events, free = [], 0.0
    for k in range(steps):
        for n in range(5):
            at, number = since + 500 * k + 100 * n, 5 * k + n + 1
            start = max(at + 15, free)
            free = start + 120
            events += [op("aten::mm", at, at + 100), launch(at + 10, at + 15, number)]
            events.append(kernel("gemm", start, free, number))
        events.append(step(k, since + 500 * k, since + 500 * (k + 1)))
    return open_subject([write(path, *events)]).profiles[0]


def test_the_host_catches_up_in_no_step_that_does_not_count(tmp_path):
    """Of 600 µs, the kernels leave 500 to the host: in steps in between, it would catch up by another 100 each."""
    profile = running_ahead(tmp_path / "a.json")
    steps = Steps.of(profile)
    apart = Steps(*(column[[0, 1, 4, 5]] for column in (steps.low, steps.high, steps.number)))
    saved, usual = (Savings(profile, each).of(every_kernel(profile)).step_ns for each in (apart, steps))
    assert saved == pytest.approx(usual, rel=0.2)


def test_what_is_replayed_begins_and_ends_with_a_step_to_the_nanosecond(tmp_path):
    """A number of ns since 1970 is too large for a float."""
    profile = running_ahead(tmp_path / "a.json", since=1_700_000_000_000_000.125)
    table = profile.trace.steps
    assert savings(profile)._stretches == [(int(table.issued[0]), int(table.done[-1]))]


def test_a_claim_of_which_nothing_is_in_the_stretch_that_is_replayed_saves_nothing(tmp_path):
    """Found by a random trace: the host is ahead of the GPU by more than the time that the finding claims."""
    copies = [
        part
        for number, end, runs_from, runs_to in ((4, 0, 0, 10), (6, 0.001, 0.001, 10.001), (8, 0, 0, 10), (9, 0, 0, 0))
        for part in (launch(0, end, number, "cudaMemcpyAsync"), kernel("gemm", runs_from, runs_to, number))
    ]
    events = [
        *(step(number, *times) for number, times in enumerate(((0, 0), (0, 0.001), (0.001, 30.001), (30.001, 200)))),
        *copies,
        launch(0.001, 10, 5, "cudaMemcpyAsync"),
        launch(30, 30, 7),
        kernel("ncclDevKernel_AllReduce", 30, 40, 7),
        launch(0, 0, 9, "cudaStreamIsCapturing"),
    ]
    (profile,) = open_subject([write(tmp_path / "trace.json", *events)]).profiles
    assert all(finding.cost_ns is None or finding.cost_ns > 0 for finding in diagnose(profile).all_findings)
