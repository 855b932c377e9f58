"""Causes of known cost, planted into a trace of a GPU: found first, with their culprit, and nothing else."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from real import trace_path

from tests.findings import edits
from tests.findings.edits import Plant, Tape
from tests.findings.healthy import healthy
from tests.findings.pointing import points_at_events
from tracekit.findings import Diagnosis, diagnose
from tracekit.profile import Profile, open_subject

MS = 1_000_000


@dataclass(frozen=True)
class Case:
    """A cause and what must be reported: the verdict, its culprit, and by how many ns which buckets of a step grow."""

    put: Plant
    verdict: str
    culprit: str
    buckets: tuple[str, ...]
    grows_ns: float
    beside: tuple[str, ...] = ()  # other findings that are true as well


CASES = {
    "a sleep": Case(edits.sleep(8000), "python_bound", "sleep", ("python",), 8 * MS),
    "a wait": Case(edits.item(8000), "sync_stall", "aten::item", ("sync_stall",), 8 * MS),
    "tiny kernels": Case(
        edits.tiny_kernels(800),
        "operator_loop",
        "aten::add_",
        ("dispatch", "kernel_launch", "gpu_compute"),
        8 * MS,
        ("dispatch_bound", "unfused_elementwise"),
    ),
    "a pageable copy": Case(
        edits.pageable_copy(8000), "h2d_pageable_copy", "aten::to", ("sync_stall", "gpu_copy"), 8 * MS
    ),
    "a slow loader": Case(edits.slow_loader(8000), "dataloader_bound", "image::decode_jpeg", ("dataload",), 8 * MS),
    "a collective": Case(edits.collective(8000), "exposed_comm", "ncclDevKernel_AllReduce", ("gpu_comm",), 8 * MS),
}


@pytest.fixture(params=["made", "leimao_eager_rtx5080"])
def base(request, tmp_path) -> Path:
    """A trace in which the GPU is sometimes out of work: a synthetic one, and one of a real model."""
    return healthy(tmp_path / "made.json", waits=True) if request.param == "made" else trace_path(request.param)


def opened(path: Path) -> tuple[Profile, Diagnosis]:
    profile = open_subject([path]).profiles[0]
    diagnosis = diagnose(profile)
    for finding in diagnosis.all_findings:
        points_at_events(profile, finding)
    return profile, diagnosis


def ids(diagnosis: Diagnosis) -> set[str]:
    return {each.id for each in diagnosis.findings}


@pytest.mark.parametrize("name", CASES)
def test_a_cause_in_every_step(base, tmp_path, name):
    case, (before, usual) = CASES[name], opened(base)
    tape = Tape.read(base)
    moments = tape.idle_moments()
    assert len(moments) == len(tape.steps())
    tape.plant(moments, case.put)
    profile, diagnosis = opened(tape.write(tmp_path / "planted.json"))

    ours, theirs = profile.means["wall"], before.means["wall"]
    assert ours.step_ns - theirs.step_ns == pytest.approx(8 * MS, rel=0.01)
    assert sum(ours.parts[key] - theirs.parts[key] for key in case.buckets) == pytest.approx(case.grows_ns, rel=0.05)

    assert diagnosis.verdict.id == case.verdict
    findings = [each for each in diagnosis.findings if each.id == case.verdict]
    assert all(case.culprit in str(each.where) for each in findings)
    had = sum(each.cost_ns for each in usual.findings if each.id == case.verdict)
    assert sum(each.cost_ns for each in findings) - had == pytest.approx(8 * MS, rel=0.1)
    assert ids(diagnosis) <= ids(usual) | {case.verdict, *case.beside}
    assert sum(each.cost_ns for each in diagnosis.findings) <= ours.step_ns


def test_an_operator_that_stands_still_once(base, tmp_path):
    tape = Tape.read(base)
    operator = "aten::mm" if base.name == "made.json" else "aten::view"
    moment = tape.idle_moments(inside=operator)[-1:]
    tape.plant(moment, edits.nothing(80_000))
    _, diagnosis = opened(tape.write(tmp_path / "planted.json"))
    assert diagnosis.verdict.id == "host_freeze"
    assert diagnosis.findings[0].where.operator == operator
    assert diagnosis.findings[0].cost_ns == pytest.approx(80 * MS / len(tape.steps()), rel=0.1)
    assert ids(diagnosis) <= ids(opened(base)[1]) | {"host_freeze"}
    assert diagnosis.findings[0].evidence[0].name == operator


@pytest.mark.parametrize(("compile_id", "verdict"), [("0/1", "recompiles"), ("0/0", "compile_in_steps")])
def test_a_step_that_compiles(base, tmp_path, compile_id, verdict):
    tape = Tape.read(base)
    tape.plant(tape.idle_moments()[3:4], edits.recompile(100_000, compile_id))
    _, diagnosis = opened(tape.write(tmp_path / "planted.json"))
    assert diagnosis.verdict.id == verdict
    assert compile_id in str(diagnosis.findings[0].where)
    assert diagnosis.findings[0].cost_ns == pytest.approx(100 * MS / len(tape.steps()), rel=0.01)
    assert ids(diagnosis) <= ids(opened(base)[1]) | {verdict, diagnosis.verdict.id}
    assert sum(each.share for each in diagnosis.findings) <= 1


def test_idleness_that_nothing_explains(tmp_path):
    base = healthy(tmp_path / "made.json", waits=True)
    tape = Tape.read(base)
    tape.plant(tape.idle_moments()[2:3], edits.nothing(80_000))
    _, diagnosis = opened(tape.write(tmp_path / "planted.json"))
    assert diagnosis.verdict.id == "idle_unexplained"
    assert diagnosis.findings[0].confidence == "inferred"
    assert diagnosis.findings[0].cost_ns == pytest.approx(80 * MS / 6, rel=0.02)
    assert len(diagnosis.findings) == 1


def test_a_first_call(tmp_path):
    base = healthy(tmp_path / "made.json", waits=True)
    tape = Tape.read(base)
    at = tape.idle_moments()[0]

    def put(tape: Tape, moment: float) -> float:
        tape.add("cuda_runtime", "cudaFree", moment, 80_000.0)
        return 80_000.0

    tape.plant([at], put)
    tape.plant(tape.idle_moments()[2:3], lambda tape, moment: tape.add("cuda_runtime", "cudaFree", moment, 3.0) or 3.0)
    profile, diagnosis = opened(tape.write(tmp_path / "planted.json"))
    assert diagnosis.verdict.id == "gpu_bound_gemm"  # of the other steps: start-up happens once
    (cold,) = [each for each in diagnosis.findings if each.id != diagnosis.verdict.id]
    assert (cold.id, cold.where.operator) == ("cold_start", "cudaFree")
    assert cold.cost_ns == pytest.approx(80 * MS / 6, rel=0.02)
    assert profile.counted.tolist() == [False] + 5 * [True]
    assert profile.means["wall"].step_ns == pytest.approx(10 * MS, rel=0.02)
    (cold,) = profile.cold_steps
    assert cold.parts == {"the first cudaFree": pytest.approx(80 * MS, rel=0.01)}


def test_the_trace_that_is_planted_in_has_nothing_to_find(tmp_path):
    assert not opened(healthy(tmp_path / "made.json", waits=True))[1].findings
