"""What a run says about its variants beyond their traces."""

import json

import msgspec
import pytest
from small import op, step, training, write

from tracekit import run as runs
from tracekit.faces.shared.document import as_document
from tracekit.profile import open_subject
from tracekit.report import report
from tracekit.report.notes import warnings
from tracekit.report.sections.run_facts import facts
from tracekit.run import Compile, Ledger, Measured, Memory, Requested, Run, Traces, Variant


def variant(tmp_path, name, **more):
    (tmp_path / "traces").mkdir(exist_ok=True)
    training(tmp_path / "traces" / f"{name}.json")
    measured = Measured(step_ns=110_000, step_all_ns=[110_000] * 9, spread_ns=1, clock="cuda events")
    traces = Traces(steady=f"traces/{name}.json")
    requested = Requested(compile=name != "eager")
    return Variant(name=name, outcome="ok", requested=requested, traces=traces, measured=measured, **more)


def opened(tmp_path, *variants):
    created = "2026-11-21T20:00:00+00:00"
    run = Run(created=created, tracekit="0", recipe="r", script="r.py", variants=[*variants])
    runs.write(run, tmp_path / "run.json")
    return open_subject([tmp_path / "run.json"])


def values_and_warnings(subject, label):
    eager = subject.profiles[0]
    (fact,) = (each for each in facts(subject.profiles, eager) if each.label == label)
    return fact.values, [line for each in subject.profiles for line in warnings(each, eager) if "losses" in line]


@pytest.mark.parametrize(
    ("drift", "said", "warned"),
    [
        (None, "differs by 2.0e-03, more than rounding explains (1e-04)", True),
        (1e-5, "differs by 2.0e-03, more than rounding explains (1e-04)", True),
        (1e-3, "the same except for rounding (2.0e-03, tolerance 3e-03)", False),
    ],
)
def test_losses_may_differ_as_far_as_rounding_moves_them(tmp_path, drift, said, warned):
    eager = variant(tmp_path, "eager", losses=[1.0, 0.5], loss_drift=drift)
    subject = opened(tmp_path, eager, variant(tmp_path, "compiled", losses=[1.0, 0.501]))
    values, lines = values_and_warnings(subject, "loss against the baseline")
    assert values == {"compiled": said}
    assert bool(lines) == warned
    document = json.loads(json.dumps(as_document(report(subject))))
    assert document["variants"][1]["measured"]["loss_tolerance"] == max(1e-4, 3 * (drift or 0))


def test_of_a_variant_with_cuda_graphs_the_reserved_memory_is_quoted(tmp_path):
    memory = Memory(peak_allocated_bytes=1 << 20, peak_reserved_bytes=1 << 30)

    def recorded(span):
        return Ledger(compiles=[Compile(id="0/0", kind="cudagraph", span=span, start_ns=1, end_ns=2, thread=3)])

    subject = opened(
        tmp_path,
        variant(tmp_path, "eager", memory=memory),
        variant(tmp_path, "prepared", memory=memory, ledger=recorded("cudagraphify.get_container")),
        variant(tmp_path, "graphs", memory=memory, ledger=recorded("CUDAGraphNode.record")),
    )
    values, _ = values_and_warnings(subject, "peak GPU memory")
    assert values == {
        "eager": "1.00 MiB (1.00 GiB)",
        "prepared": "1.00 MiB (1.00 GiB)",
        "graphs": "1.00 GiB reserved, including the memory of its CUDA graphs",
    }


def test_a_program_that_leaves_the_gpu_alone_is_told(tmp_path):
    used = variant(tmp_path, "eager", memory=Memory(peak_allocated_bytes=0))
    (profile,) = opened(tmp_path, used).profiles
    assert not [line for line in warnings(profile, profile) if "GPU" in line]  # it has kernels, whoever allocates
    write(tmp_path / "traces" / "eager.json", step(0, 0, 100), op("aten::mm", 10, 90))
    for peak, said in ((0, 1), (1 << 20, 0), (None, 0)):
        left = msgspec.structs.replace(used, memory=Memory(peak_allocated_bytes=peak))
        (profile,) = opened(tmp_path, left).profiles
        told = [line for line in warnings(profile, profile) if line.startswith("it put nothing on the GPU")]
        assert len(told) == said


@pytest.mark.parametrize("processes", [3, 2, 1, None, "3"])
def test_a_gpu_that_others_used_is_told(tmp_path, processes):
    (profile,) = opened(tmp_path, variant(tmp_path, "eager", gpu={"processes": processes})).profiles
    told = [line for line in warnings(profile, profile) if "had its GPU open" in line]
    others = {3: "2 other processes", 2: "1 other process"}.get(processes)
    assert [line.partition(" had")[0] for line in told] == ([others] if others else [])


def test_a_gpu_that_was_held_down_is_told(tmp_path):
    state = {"clocks.sm": "1200 MHz", "clocks.max.sm": "1980 MHz", "throttled_by": ["power cap"]}
    subject = opened(tmp_path, variant(tmp_path, "eager", gpu=state))
    assert values_and_warnings(subject, "GPU under load")[0] == {"eager": "1200 MHz of 1980 MHz"}
    (profile,) = subject.profiles
    assert "its GPU ran slower than it could (power cap) while it was measured." in [*warnings(profile, profile)]
