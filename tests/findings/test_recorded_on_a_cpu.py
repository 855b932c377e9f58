"""A cause planted into training on a CPU, recorded by torch.profiler as users record it."""

import time

import torch

from tests.findings.pointing import points_at_events
from tracekit.findings import diagnose
from tracekit.profile import open_subject

SLEEP_S = 0.4  # more than a busy machine delays everything else in a step


def recorded(path, *, sleeps):
    """Four steps of a small model, with stacks, and how many ns each slept, because a busy machine wakes it late."""
    slept = []
    model = torch.nn.Linear(64, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU],
        schedule=torch.profiler.schedule(wait=0, warmup=1, active=4, repeat=1),
        with_stack=True,
    ) as profiler:
        for _ in range(5):
            optimizer.zero_grad()
            model(torch.ones(32, 64)).square().mean().backward()
            if sleeps:
                begun = time.perf_counter_ns()
                time.sleep(SLEEP_S)
                slept.append(time.perf_counter_ns() - begun)
            optimizer.step()
            profiler.step()
    profiler.export_chrome_trace(str(path))
    return open_subject([path]).profiles[0], slept[1:]  # the first step is not recorded


def test_a_sleep_in_python(tmp_path):
    profile, slept = recorded(tmp_path / "trace.json", sleeps=True)
    diagnosis = diagnose(profile)
    assert diagnosis.verdict.id == diagnosis.findings[0].id == "python_bound"
    first = diagnosis.findings[0]
    # Python's own work is part of it, too, and takes its time on a busy machine.
    assert 0.98 * sum(slept) / len(slept) <= first.cost_ns <= 1.001 * profile.means["wall"].parts["python"]
    assert first.evidence[0].name == "<built-in function sleep>"
    assert first.where.operator == "sleep"
    for each in diagnosis.all_findings:
        points_at_events(profile, each)


def test_no_sleep(tmp_path):
    profile, _ = recorded(tmp_path / "trace.json", sleeps=False)
    diagnosis = diagnose(profile)
    # A busy machine may really freeze the host, but nothing else may be reported.
    assert not [each for each in diagnosis.findings if each.id in ("dataloader_bound", "recompiles")]
    assert "sleep" not in [each.where.operator for each in diagnosis.findings]
