"""What compiles inside steps, by cause: tuning and recording of CUDA graphs are distinguished from compiling."""

import pytest
from small import event, kernel, launch, op, step, write

from tests.findings.pointing import points_at_events
from tracekit.analyses import compiles
from tracekit.findings import Finding, diagnose, diagnosis
from tracekit.findings.rules.compiled_code import eager_remainders
from tracekit.profile import open_subject
from tracekit.report.sections.findings import cost, sentence


def training(path, *spans, steps=6, replays=True, idle=0.0):
    """Steps of 10 ms, each of which replays a CUDA graph and launches one kernel after `idle` µs without GPU work;
    in the given steps, something else comes first."""
    events, at, ids = [], 0.0, 0
    for k in range(steps):
        begun = at
        for number, name, lasting in spans:
            if number == k:
                events.append(event("user_annotation", name, at + 1, at + 1 + lasting))
                at += lasting + 2
        ids += 2
        events += [
            launch(at + 1, at + 10, ids, "cudaGraphLaunch" if replays else "cudaLaunchKernel"),
            kernel("gemm", at + 12, at + 5000, ids),
            op("aten::add_", at + 5000 + idle - 30, at + 5000 + idle),
            launch(at + 5000 + idle - 10, at + 5000 + idle - 2, ids + 1),
            kernel("add", at + 5000 + idle, at + 10_000, ids + 1),
            launch(at + 5000 + idle + 1, at + 10_001, 0, "cudaDeviceSynchronize"),
        ]
        at += 10_005
        events.append(step(k, begun, at))
    profile = open_subject([write(path, *events)]).profiles[0]
    listed = diagnose(profile).all_findings
    for each in listed:
        points_at_events(profile, each)
    return profile, listed


def titled(listed, *ids):
    return [each for each in listed if each.id in ids]


def test_kernels_that_are_tuned(tmp_path):
    _, listed = training(tmp_path / "a.json", (2, "CachingAutotuner.benchmark_all_configs", 30_000))
    (finding,) = titled(listed, "compile_in_steps", "recompiles")
    assert (finding.id, finding.cost_ns) == ("compile_in_steps", pytest.approx(30e6 / 6, rel=0.01))
    assert finding.headline == "Kernels are autotuned inside steps: CachingAutotuner.benchmark_all_configs"
    assert finding.why == "1 autotuning run takes 30.0 ms of the 90.0 ms recorded."
    assert cost(finding) == "up to 30.0 ms of the 90.0 ms recorded (33.3 %)"
    assert f"cost: {cost(finding)}" in sentence(finding)
    assert "TORCHINDUCTOR_CACHE_DIR" in finding.advice


def test_graphs_that_are_recorded_again(tmp_path):
    recordings = [(0, "CUDAGraphNode.record", 4000), (0, "CUDAGraphNode.record", 3000)]
    again = [(3, "CUDAGraphNode.record", 30_000), (4, "CUDAGraphNode.record", 20_000)]
    _, listed = training(tmp_path / "a.json", *recordings, *again)
    second, first = titled(listed, "compile_in_steps", "recompiles")
    assert (second.id, second.cost_ns) == ("compile_in_steps", pytest.approx(50e6 / 6, rel=0.01))
    assert second.headline == "CUDA graphs are recorded in later steps, too: CUDAGraphNode.record"
    assert second.why.startswith("2 recordings after steps that only replayed graphs take 50.0 ms of the 117 ms ")
    assert (first.id, first.cost_ns) == ("compile_in_steps", pytest.approx(7e6 / 6, rel=0.01))
    assert "2 CUDA graph recordings" in first.title


def test_the_first_recordings_are_none_again(tmp_path):
    recordings = [(k, "CUDAGraphNode.record", 4000) for k in (0, 1, 1)]
    _, listed = training(tmp_path / "a.json", *recordings)
    assert {each.id for each in titled(listed, "compile_in_steps", "recompiles")} == {"compile_in_steps"}


def test_graphs_that_are_prepared_for_each_new_size_are_no_code_that_is_compiled(tmp_path):
    """And no graph that was recorded, neither in the finding nor in the count."""
    prepared = [(k, "cudagraphify.get_container", 4000 + k) for k in range(6)]
    profile, listed = training(tmp_path / "a.json", (0, "CUDAGraphNode.record", 3000), *prepared, replays=False)
    (finding,) = titled(listed, "compile_in_steps", "recompiles")
    assert finding.headline == "CUDA graphs are made inside steps, most of all cudagraphify.get_container"
    assert finding.why.startswith("1 CUDA graph recording and 6 CUDA graph preparations take 27.0 ms of the 87.1 ms ")
    assert finding.do.startswith("Each set of input sizes needs a graph of its own")
    said = compiles.answer(profile).sentence
    assert said.startswith("7 recordings (1 CUDA graph, 6 CUDA graph preparations) take ")


def test_each_cause_is_a_finding_of_its_own(tmp_path):
    compiled = [(1, "dynamo", 9000), (2, "CachingAutotuner.benchmark_all_configs", 5000)]
    _, listed = training(tmp_path / "a.json", *compiled)
    tuned, rest = sorted(titled(listed, "compile_in_steps"), key=lambda each: each.cost_ns)
    assert "tuned" in tuned.title
    assert "Code is compiled" in rest.title
    assert rest.cost_ns == pytest.approx(9e6 / 6, rel=0.01)


def test_nothing_compiles(tmp_path):
    assert not titled(training(tmp_path / "a.json")[1], "compile_in_steps", "recompiles")


def test_what_no_graph_holds(tmp_path):
    profile, listed = training(tmp_path / "a.json", idle=600)
    (finding,) = eager_remainders(profile)
    assert finding.headline == "Work is left outside of CUDA graphs, most of all aten::add_"
    assert finding.why.startswith("Besides replaying graphs once a step, the host makes 1 separate call, ")
    assert finding.where.operator == "aten::add_"
    claimed = profile.attribution.pieces
    assert finding.claim.total() == pytest.approx(6 * 600_000, rel=0.05)
    assert claimed.view == "wall"
    (slow,) = titled(listed, "launch_bound", "dispatch_bound", "python_bound")
    assert "eager_remainders" in slow.overlaps


@pytest.mark.parametrize(("replays", "idle"), [(True, 0.0), (False, 600.0)])
def test_remainders_that_cost_nothing_or_no_graphs_at_all(tmp_path, replays, idle):
    profile, _ = training(tmp_path / "a.json", replays=replays, idle=idle)
    assert sum(each.claim.total() for each in eager_remainders(profile)) <= 6 * 50_000 * replays


def test_the_fuser_of_torchscript_compiles(tmp_path):
    """The call takes 5 ms, of which the GPU still has work for 1 ms: what is told is the time in which it idles."""
    events = [
        launch(1, 10, 1),
        kernel("gemm", 12, 1012, 1),
        op("fallback_function", 20, 5020),
        launch(5010, 5018, 2),
        kernel("softmax", 5020, 5100, 2),
        launch(5030, 5101, 0, "cudaDeviceSynchronize"),
        step(0, 0, 5110),
    ]
    diagnosis = diagnose(open_subject([write(tmp_path / "a.json", *events)]).profiles[0])
    (finding,) = (each for each in diagnosis.findings if each.id == "compile_in_steps")
    assert finding.why.startswith("This happens once, for 4.00 ms, and the GPU idles meanwhile.")


def test_what_is_saved_on_average_over_all_steps_says_so(tmp_path):
    """The headline's mean is of the steps that do not compile."""
    tuning = (2, "CachingAutotuner.benchmark_all_configs", 30_000)
    profile, _ = training(tmp_path / "a.json", tuning)
    pieces = profile.attribution.pieces
    tuned = Finding("recompiles", "Tuned", claim=pieces.union(pieces.of("compile")), every_step=True)
    slow = Finding(
        "launch_bound", "Slow", claim=pieces.union(pieces.of("kernel_launch")), do="It saves {saving} a step."
    )
    by_id = {each.id: each for each in diagnosis(profile, [tuned, slow]).all_findings}
    assert by_id["launch_bound"].do.endswith(" a step on average over all 6 steps.")
    (alone,) = diagnosis(profile, [slow]).all_findings
    assert alone.do.endswith(" a step.")
    assert not alone.total
    assert by_id["recompiles"].total == "30.0 ms in all"
