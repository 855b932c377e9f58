"""Idle time of the GPU of which nothing was recorded is told as such, however short each piece of it is."""

import pytest
from small import kernel, launch, op, step, write

from tracekit.findings import diagnose
from tracekit.profile import open_subject


def silent(path, between_us, operators=False):
    """Steps in which eight kernels of 100 µs are launched, each after a time of which nothing was recorded."""
    events, at = [], 0.0
    for number in range(4):
        begun = at
        for k in range(8):
            at += between_us
            ids = 1 + 8 * number + k
            events += [launch(at, at + 5, ids), kernel("gemm", at + 10, at + 110, ids)]
            if operators:
                events.append(op("aten::mm", at - 1, at + 6))
            at += 110
        events.append(step(number, begun, at))
    return open_subject([write(path, *events)]).profiles[0]


@pytest.mark.parametrize(("between_us", "share"), [(300, 0.73), (1500, 0.93)])
def test_pieces_of_any_length_are_told_together(tmp_path, between_us, share):
    profile = silent(tmp_path / "t.json", between_us)
    first = diagnose(profile).told[0]
    assert (first.id, first.confidence) == ("idle_unexplained", "inferred")
    assert first.share == pytest.approx(share, abs=0.03)
    assert first.claimed_ns == pytest.approx(profile.means["wall"].parts["unrecorded"])


def test_where_operators_were_recorded_it_is_python(tmp_path):
    assert "idle_unexplained" not in [each.id for each in diagnose(silent(tmp_path / "t.json", 300, True)).all_findings]
