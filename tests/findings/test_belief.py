"""Findings rest on what is known: not on steps that lack work where few others are left, nor on an order of causes
where operators were lost.
"""

import pytest
from small import kernel, launch, op, step, write

from tracekit.findings import diagnose
from tracekit.profile import open_subject


def recorded(path, steps=6, lost=(), without_operators=()):
    """Steps of 2 ms in which an operator launches each of ten kernels of 100 µs, and the host waits for the last."""
    events = []
    for number in range(steps):
        begun = 2000.0 * number
        events.append(step(number, begun, begun + 2000))
        for k in range(10):
            at, ids = begun + 150 * k, 1 + 10 * number + k
            if number not in without_operators:
                events.append(op("aten::mm", at, at + 40))
            events.append(launch(at + 10, at + 20, ids))
            if number not in lost:
                events.append(kernel("gemm", at + 30, at + 130, ids))
        events.append(launch(begun + 1500, begun + 1990, 0, "cudaDeviceSynchronize"))
    return open_subject([write(path, *events)]).profiles[0]


@pytest.mark.parametrize(("lost", "told"), [((), True), ((1, 4), True), ((0, 1, 2, 4), False)])
def test_a_few_whole_steps_among_many_that_are_not_say_little(tmp_path, lost, told):
    profile = recorded(tmp_path / "t.json", lost=lost)
    diagnosis = diagnose(profile)
    assert bool(diagnosis.all_findings) is told
    assert (diagnosis.verdict.id == "unknown") is not told
    assert {each.law for each in diagnosis.withheld} == (set() if told else {"lost_work"})
    assert [*profile.counted.nonzero()[0]] == [number for number in range(6) if number not in lost]


def test_where_operators_are_lost_no_cause_is_ranked(tmp_path):
    diagnosis = diagnose(recorded(tmp_path / "t.json", without_operators=(2, 3)))
    assert diagnosis.verdict.id == "unknown"
    assert {each.law for each in diagnosis.withheld} == {"lost_operators"}
    assert all("causes" in finding.rests_on for finding in diagnose(recorded(tmp_path / "u.json")).all_findings)
