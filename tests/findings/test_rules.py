"""Rules that do not correspond to a bucket: each fires on its cause, and is silent without it."""

from pathlib import Path

import pytest
from msgspec.structs import replace
from small import Event, event, kernel, launch, op, step, write

from tests.findings.edits import Plant, Tape
from tests.findings.healthy import healthy
from tests.findings.pointing import points_at_events
from tracekit.findings import Finding, diagnose
from tracekit.findings.rules.sync_stall import sync_stall
from tracekit.profile import Profile, open_subject
from tracekit.run import Break, Ledger, Limit, Requested, Skip, Variant


def opened(path: Path) -> Profile:
    return open_subject([path]).profiles[0]


def planted(tmp_path: Path, put: Plant) -> Profile:
    """A trace in which nothing is wrong, with something planted into every step."""
    tape = Tape.read(healthy(tmp_path / "made.json", waits=True))
    tape.plant(tape.idle_moments(), put)
    return opened(tape.write(tmp_path / "planted.json"))


def finding_of(profile: Profile, name: str) -> Finding | None:
    listed = diagnose(profile).all_findings
    for each in listed:
        points_at_events(profile, each)
    return next((each for each in listed if each.id == name), None)


def launching(cat: str, name: str, number: int, each: float = 30.0) -> Plant:
    """A span in which `number` operators each launch a kernel."""

    def put(tape: Tape, at: float) -> float:
        tape.add(cat, name, at, number * each + 2)
        for k in range(number):
            t, ids = at + 1 + k * each, tape.correlation()
            tape.add("cpu_op", "aten::fill_", t, each - 2)
            tape.add("cuda_runtime", "cudaLaunchKernel", t + 2, 5.0, correlation=ids)
            tape.add("kernel", "fill", t + 8, 1.0, correlation=ids)
        return number * each + 2

    return put


@pytest.mark.parametrize(
    ("name", "rule"),
    [("Optimizer.step#Adam.step", "optimizer_loop"), ("Optimizer.zero_grad#Adam.zero_grad", "zero_grad")],
)
def test_parameters_one_by_one(tmp_path, name, rule):
    profile = planted(tmp_path, launching("user_annotation", name, 100))
    listed = diagnose(profile).findings
    advice = " ".join(each.advice for each in listed)
    assert rule in {each.id for each in listed} or rule in {id for each in listed for id in each.overlaps}
    assert ("foreach=True" in advice) is (rule == "optimizer_loop")
    assert ("set_to_none" in advice) is (rule == "zero_grad")


def test_a_fused_optimizer_is_well(tmp_path):
    profile = planted(tmp_path, launching("user_annotation", "Optimizer.step#Adam.step", 3))
    assert finding_of(profile, "optimizer_loop") is None


def test_garbage_that_is_collected_inside_steps(tmp_path):
    def put(tape: Tape, at: float) -> float:
        tape.add("python_function", "Python GC", at, 900.0)
        return 900.0

    profile = planted(tmp_path, put)
    garbage = finding_of(profile, "garbage_collection")
    assert garbage is not None
    assert "gc.freeze" in garbage.advice
    assert garbage.share == pytest.approx(0.083, abs=0.01)
    assert finding_of(opened(healthy(tmp_path / "well.json", waits=True)), "garbage_collection") is None


def test_memory_that_is_allocated_in_every_step(tmp_path):
    def put(tape: Tape, at: float) -> float:
        for k in range(4):
            tape.add("cuda_runtime", ("cudaMalloc", "cudaFree")[k % 2], at + 200 * k, 199.0)
        return 800.0

    churn = finding_of(planted(tmp_path, put), "allocator")
    assert churn is not None
    assert churn.cost_ns == pytest.approx(796_000, rel=0.1)  # part of it belongs to the refill after a wait
    assert "4 times a step" in churn.title
    tape = Tape.read(healthy(tmp_path / "once.json", waits=True))
    tape.plant(tape.idle_moments()[:1], put)
    assert finding_of(opened(tape.write(tmp_path / "first.json")), "allocator") is None


@pytest.mark.parametrize(
    ("name", "rule"), [("Lazy Function Loading", "cold_start"), ("Buffer Flush", "profiler_overhead")]
)
def test_tools_that_get_in_the_way(tmp_path, name, rule):
    def put(tape: Tape, at: float) -> float:
        tape.add("cpu_op", "aten::relu", at, 900.0)
        tape.events.append(event("overhead", name, at + 1, at + 899, tid=0, pid=-1))
        return 900.0

    blamed = finding_of(planted(tmp_path, put), rule)
    assert blamed is not None
    assert blamed.cost_ns == pytest.approx(898_000, rel=0.02)


REASONS = {
    ("aten::item", "aten::_local_scalar_dense"): "only every N steps",
    ("aten::index", "aten::nonzero"): "torch.where, a weight of zero",
    ("aten::nonzero",): "torch.where with three arguments",
    ("aten::unique_dim", "aten::_unique2"): "distinct values once",
    ("aten::repeat_interleave",): "output_size",
    ("torch_scatter::scatter_sum", "aten::max", "aten::item"): "dim_size",
    ("aten::coalesce", "aten::_coalesce"): "Merge duplicates once",
    ("aten::to", "aten::copy_"): "non_blocking",
    (): "Remove the wait",
}


@pytest.mark.parametrize("operators", REASONS)
def test_what_is_to_be_done_about_a_wait(tmp_path, operators):
    def put(tape: Tape, at: float) -> float:
        for depth, name in enumerate(operators):
            tape.add("cpu_op", name, at + depth, 3000.0 - 2 * depth)
        tape.add("cuda_runtime", "cudaStreamSynchronize", at + 10, 2900.0, correlation=tape.correlation())
        return 3000.0

    stall = finding_of(planted(tmp_path, put), "sync_stall")
    assert stall is not None
    assert REASONS[operators] in stall.advice
    assert stall.where.operator == (operators[0] if operators else None) or stall.where.operator in operators
    assert len(stall.evidence) == 5


def waiting(tape: Tape, at: float, *operators: str, length: float = 900.0) -> float:
    """A call that waits inside of these operators."""
    for depth, name in enumerate(operators):
        tape.add("cpu_op", name, at + depth, length - 2 * depth)
    tape.add("cuda_runtime", "cudaStreamSynchronize", at + 10, length - 30, correlation=tape.correlation())
    return at + length


def test_the_waits_that_cost_most_are_the_evidence(tmp_path):
    """The GPU works through the long wait, and idles after the short one."""
    path = write(
        tmp_path / "t.json",
        step(1, 0, 1000),
        launch(5, 10, 1),
        kernel("a", 12, 900, 1),
        launch(20, 901, 0, "cudaStreamSynchronize"),
        launch(902, 904, 2),
        kernel("a", 905, 940, 2),
        launch(906, 956, 0, "cudaStreamSynchronize"),
        launch(990, 992, 3),
        kernel("a", 994, 1000, 3),
    )
    (stall,) = sync_stall(open_subject([path]).profiles[0])
    assert [each.dur_ns for each in stall.evidence] == [50_000, 881_000]


def test_places_that_wait_for_sizes_are_one_finding(tmp_path):
    def put(tape: Tape, at: float) -> float:
        waiting(tape, at, "aten::index", "aten::nonzero", length=2000.0)
        waiting(tape, at + 2100, "aten::repeat_interleave")
        waiting(tape, at + 3100, "aten::item", "aten::_local_scalar_dense")
        return 4100.0

    stalls = [each for each in diagnose(planted(tmp_path, put)).findings if each.id == "sync_stall"]
    assert [each.title.partition(" ")[0] for each in stalls] == ["2", "aten::item"]
    sized, read = stalls
    assert "They count on the GPU, read the count back, and only then allocate and launch" in sized.why
    assert sized.where.operator == "aten::index"
    assert "torch.where" in sized.advice
    assert "output_size" in sized.advice
    assert len(sized.evidence) == 5
    assert sized.cost_ns is not None
    assert read.cost_ns is not None
    assert sized.cost_ns == pytest.approx(2 * read.cost_ns, rel=0.7)


@pytest.mark.parametrize(
    ("count", "kind", "after", "said"),
    [
        ("aten::max", "long int", "aten::new_zeros", "the size of the next tensor"),
        ("aten::max", "float", "aten::new_zeros", "reads a value back"),  # such as a score
        ("aten::mul", "long int", "aten::new_zeros", "reads a value back"),
        ("aten::max", "long int", "aten::add", "reads a value back"),
    ],
)
def test_a_number_that_becomes_a_size_is_told_from_others(tmp_path, count, kind, after, said):
    def put(tape: Tape, at: float) -> float:
        tape.add("cpu_op", count, at, 50.0, **{"Input Dims": [[2, 90]], "Input type": [kind]})
        end = waiting(tape, at + 60, "aten::item", "aten::_local_scalar_dense", length=2000.0)
        tape.add("cpu_op", after, end + 5, 50.0)
        return end + 60 - at

    stall = finding_of(planted(tmp_path, put), "sync_stall")
    assert stall is not None
    assert said in stall.title
    assert ("num_nodes" in stall.advice) is ("size" in said)


def test_what_the_ledger_knows_of_compiled_code(tmp_path):
    profile = planted(tmp_path, lambda tape, at: tape.add("cpu_op", "aten::add", at, 450.0) or 900.0)
    why = "Dynamic shape operator"
    ledger = Ledger(
        breaks=[Break(compile="0/0", reason=why, file="model.py", line=12, t_ns=0)],
        limits=[Limit(file="model.py", line=3, name="forward", t_ns=0)],
        skips=[Skip(reason="mutated inputs", file="model.py", line=7, t_ns=0)],
    )
    logged = replace(profile, variant=Variant(name="a", outcome="ok", requested=Requested(compile=True), ledger=ledger))
    assert finding_of(logged, "recompile_limit") is not None
    texts = " ".join(f"{each.title} {each.advice} {each.where}" for each in diagnose(logged).all_findings)
    for words in ("forward runs eagerly", "model.py:3", why, "mutated inputs"):
        assert words in texts
    clean = replace(logged, variant=replace_ledger(logged.variant))
    assert not {"graph_breaks", "recompile_limit", "cuda_graphs_skipped"} & {
        each.id for each in diagnose(clean).all_findings
    }


def replace_ledger(variant: Variant) -> Variant:
    return Variant(name=variant.name, outcome="ok", requested=variant.requested)


def test_a_cpu_names_its_operator(tmp_path):
    made: list[Event] = []
    for number in range(4):
        t = 1000.0 * number
        made += [step(number, t, t + 900), op("aten::index_add_", t + 5, t + 600), op("aten::mm", t + 610, t + 890)]
    cpu = finding_of(opened(write(tmp_path / "cpu.json", *made)), "cpu_compute")
    assert cpu is not None
    assert cpu.where.operator == "aten::index_add_"
    assert "sparse or segmented" in cpu.advice
    profile = opened(write(tmp_path / "gpu.json", *made, launch(10, 20, 1), kernel("k", 30, 500, 1)))
    beside = finding_of(profile, "cpu_compute")
    assert beside is not None
    assert beside.headline == "The GPU waits while the CPU computes aten::index_add_"


def test_a_loop_that_inductor_generated_is_not_to_be_compiled_again(tmp_path):
    loop = "graph_0_cpp_fused_native_dropout_0"
    made = [each for k in range(4) for each in (step(k, 1000 * k, 1000 * k + 900), op(loop, 1000 * k, 1000 * k + 880))]
    cpu = finding_of(opened(write(tmp_path / "cpu.json", *made)), "cpu_compute")
    assert cpu is not None
    assert "is compiled already" in cpu.advice


def test_the_host_of_a_gpu_is_named_by_its_largest_part(tmp_path):
    def slow(dispatch: float, call: float, python: float) -> Path:
        made, t = [], 0.0
        for number in range(4):
            begun = t
            for k in range(20):
                t += python
                ids = 1 + 20 * number + k
                made += [op(f"aten::op{k}", t, t + dispatch + call + 2), launch(t + dispatch, t + dispatch + call, ids)]
                t += dispatch + call + 2
                made.append(kernel("k", t, t + 2, ids))
            made.append(step(number, begun, t))
        return write(tmp_path / "slow.json", *made)

    assert diagnose(opened(slow(50, 5, 5))).verdict.id == "dispatch_bound"
    assert diagnose(opened(slow(5, 50, 5))).verdict.id == "launch_bound"
    assert diagnose(opened(slow(5, 5, 50))).verdict.id == "python_bound"
    assert "20 kernels and copies 2.00 µs each to run" in diagnose(opened(slow(50, 5, 5))).verdict.sentence


def test_a_slow_host_names_what_the_gpu_waits_for_most(tmp_path):
    """An operator or, where more of the time is that of its own code, the innermost Python function."""

    def headline(in_operator: float, in_function: float) -> str:
        made = []
        for number in range(4):
            begun = 1000.0 * number
            made.append(step(number, begun, begun + 990))
            made.append(event("python_function", "site-packages/lib/loop.py(3): outer", begun, begun + 990))
            for k in range(5):
                at, ids = begun + 190 * k, 1 + 10 * number + k
                began = at + in_function
                made += [
                    event("python_function", "site-packages/lib/loop.py(9): prepare", at, began),
                    op("aten::mul", began, began + in_operator),
                    launch(began + in_operator - 5, began + in_operator, ids),
                    kernel("mul", began + in_operator + 1, began + in_operator + 5, ids),
                ]
        (first, *_) = diagnose(opened(write(tmp_path / "slow.json", *made))).findings
        assert str(first.where)
        return first.headline

    assert headline(120, 30) == "Dispatch-bound: the host is too slow, most of all in aten::mul"
    assert headline(30, 120) == "Python-bound: the host is too slow, most of all in prepare"


def wrapped(path, share, *more):
    """Four steps of ten launches 100 µs apart, of which this share is in the wrapper of a compiled graph."""
    made = [op("aten::empty", -20, -10)]
    for number in range(4):
        begun = 1000.0 * number
        span = event("user_annotation", "## Call CompiledFxGraph fn2ys7 ##", begun, begun + 1000 * share)
        made += [step(number, begun, begun + 1000), span]
        for k in range(10):
            t, ids = begun + 100 * k + 90, 1 + 10 * number + k
            made += [launch(t, t + 5, ids), kernel("triton_poi_fused_add_0", t + 6, t + 9, ids)]
    return write(path, *made, *more)


def test_time_in_generated_wrappers_is_told_with_its_cure(tmp_path):
    (finding, *_) = diagnose(opened(wrapped(tmp_path / "a.json", 0.9))).findings
    assert finding.id == "python_bound"
    assert "of it in wrappers that Inductor generated. " in finding.why
    assert "cpp_wrapper" in finding.advice
    assert "{" not in finding.advice.replace('{"cpp_wrapper"', "")
    frames = [event("python_function", "train.py(3): step", 0, 4000)]
    (with_stacks, *_) = diagnose(opened(wrapped(tmp_path / "b.json", 0.9, *frames))).findings
    assert "which recording stacks makes longer" in with_stacks.title


def test_python_outside_of_wrappers_is_not_theirs(tmp_path):
    (finding, *_) = diagnose(opened(wrapped(tmp_path / "a.json", 0.3))).findings
    assert "Inductor" not in finding.title
    assert "cpp_wrapper" not in finding.advice


def test_where_graphs_are_replayed_wrappers_are_not_to_blame(tmp_path):
    replay = [launch(3990, 3995, 999, "cudaGraphLaunch"), kernel("gemm", 3996, 3999, 999)]
    (finding, *_) = diagnose(opened(wrapped(tmp_path / "a.json", 0.9, *replay))).findings
    assert "cpp_wrapper" not in finding.advice


def test_no_rule_says_anything_of_healthy_steps(tmp_path):
    profile = opened(healthy(tmp_path / "a.json"))
    assert not diagnose(profile).all_findings
    assert len(profile.sample.arguments) == 40  # shapes of operators and occupancy of kernels were recorded
