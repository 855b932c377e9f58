"""What findings cost: no time is counted twice, the costliest comes first, and doubts come before all."""

import json

import numpy as np
import pytest
from small import event, kernel, launch, op, step, training, write

from tests.findings.healthy import healthy
from tracekit.base.intervals import Union
from tracekit.cli import main
from tracekit.engine.buckets import CODES
from tracekit.findings import VERDICTS, Finding, diagnose, diagnosis, rule, unregister
from tracekit.profile import open_subject


@pytest.fixture
def profile(tmp_path):
    """Four steps of 110 to 113 µs, which start at intervals of a millisecond."""
    return open_subject([training(tmp_path / "small.json", steps=4)]).profiles[0]


@pytest.fixture
def well(tmp_path):
    """A trace in which nothing is wrong."""
    return healthy(tmp_path / "healthy.json")


def claim(low: float, high: float) -> Union:
    """A claim of the same µs in every step."""
    starts = np.arange(4) * 1_000_000 + int(low * 1000)
    return Union.of(starts, starts + int((high - low) * 1000))


def test_time_that_two_claim_is_counted_once(profile):
    findings = [
        Finding("sync_stall", "B", claim=claim(20, 50)),
        Finding("python_bound", "A", claim=claim(0, 40)),
        Finding("garbage", "C", claim=claim(60, 110)),
    ]
    listed = diagnosis(profile, findings)
    step = profile.means["wall"].step_ns
    assert [(each.id, each.cost_ns, each.overlaps) for each in listed.findings] == [
        ("python_bound", 40_000.0, ("sync_stall",)),
        ("garbage", 38_250.0, ()),
        ("sync_stall", 10_000.0, ("python_bound",)),
    ]
    # 60–110 µs of a step: without them, the sync no longer waits (65–80 µs), and all that Python does after it is gone
    # (80 to 110–112 µs). Of the last step, nothing is known after its last event, the sync.
    assert [each.claimed_ns for each in listed.findings] == [40_000.0, 50_000.0, 10_000.0]
    assert listed.verdict.id == "python_bound"  # a step with much to claim: the costliest is first
    assert listed.verdict.share == listed.findings[0].share == pytest.approx(40_000 / step)


def test_what_is_claimed_in_full_by_another_is_named_there(profile):
    listed = diagnosis(profile, [Finding("cold_start", "A", claim=claim(0, 40)), Finding("gc", "B", claim=claim(5, 9))])
    assert [(each.id, each.overlaps) for each in listed.all_findings] == [("cold_start", ("gc",))]


def test_a_part_belongs_to_the_finding_whose_time_it_shares_whatever_their_names(profile):
    findings = [
        Finding("python_bound", "A", claim=claim(0, 19)),
        Finding("python_bound", "B", claim=claim(20, 50)),
        Finding("gc", "C", claim=claim(2, 9)),
    ]
    listed = diagnosis(profile, findings)
    assert [(each.headline, each.also) for each in listed.findings] == [
        ("B", ()),
        ("A", ("Up to 7.00 µs of this cost has a cause of its own: C. ",)),
    ]


def test_a_part_is_no_longer_than_the_time_in_common(profile):
    findings = [
        Finding("python_bound", "A", claim=claim(0, 16)),
        Finding("sync_stall", "B", claim=claim(16, 40)),
        Finding("gc", "C", claim=claim(12, 19), do="Call it less often."),
    ]
    listed = diagnosis(profile, findings)
    assert [(each.headline, each.also) for each in listed.findings] == [
        ("B", ()),
        ("A", ("Up to 4.00 µs of this cost has a cause of its own: C. Call it less often.",)),
    ]


def test_costs_never_add_up_to_more_than_the_step(profile):
    findings = [
        Finding("sync_stall", "A", claim=claim(-500, 900)),
        Finding("cold_start", "B", 1e9),
        Finding("gc", "C", 5e4),
    ]
    listed = diagnosis(profile, findings).all_findings
    assert sum(each.cost_ns for each in listed) <= profile.means["wall"].step_ns
    assert all(0 < each.share <= 1 for each in listed)


def test_small_ones_are_left_out_unless_all_is_asked_for(well, capsys):
    @rule("flea")
    def look(profile):
        yield Finding("flea", "A flea bites", cost_ns=1000.0, do="Scratch.")

    try:
        for given, seen in (((), False), (("--full",), True)):
            assert main(["report", str(well), *given]) == 0
            assert ("A flea bites" in capsys.readouterr().out) is seen
        assert main(["report", str(well), "--format", "json"]) == 0
        (told,) = json.loads(capsys.readouterr().out)["findings"]  # the verdict
        assert (told["id"].startswith("gpu_bound"), told["cost_ns"]) == (True, None)
    finally:
        unregister("flea")


def test_a_cost_of_some_steps_is_spread_over_all(profile):
    compiling = Finding("compile_in_steps", "A", claim=Union(np.array([0]), np.array([20_000])), every_step=True)
    assert diagnosis(profile, [compiling]).all_findings[0].cost_ns == 5_000


def test_pieces_add_up_to_the_totals(profile):
    attribution = profile.attribution
    pieces = attribution.pieces
    summed = np.zeros_like(attribution.wall)
    for index, key, length in zip(pieces.step, pieces.bucket, pieces.dur, strict=True):
        name = next(name for name, code in CODES.items() if code == key)
        summed[index, attribution.views["wall"].keys.index(name)] += length
    assert (summed == attribution.wall).all()
    assert (pieces.start[1:] >= pieces.end[:-1]).all()


def test_nothing_is_a_verdict_too(tmp_path, capsys):
    assert main(["report", str(write(tmp_path / "nothing.json", op("aten::mm", 5, 5))), "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    verdict, first = document["variants"][0]["verdict"], document["findings"][0]
    assert verdict["id"] == first["id"] == "empty"
    assert verdict["share"] is first["cost_ns"] is None


def test_a_healthy_step_has_a_verdict_and_no_finding(well):
    listed = diagnose(open_subject([well]).profiles[0])
    assert not listed.all_findings
    assert listed.verdict.id == "gpu_bound_gemm"
    assert listed.verdict.share > 0.99


def test_what_beyond_the_verdicts_list_was_found_ranks_below_a_verdict(well):
    listed = diagnosis(open_subject([well]).profiles[0], [Finding("garbage", "A", cost_ns=1e6)])
    assert [each.id for each in listed.findings] == ["gpu_bound_gemm", "garbage"]
    assert listed.verdict.id == "gpu_bound_gemm"
    assert "garbage" not in VERDICTS


def test_time_of_which_nothing_was_recorded_is_not_saved_by_a_host_that_gets_ahead(tmp_path):
    """Without its wait of 2 ms, the host might launch the last kernel sooner: nobody knows what it does before."""
    events = [
        step(0, 0, 6000),
        event("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 1, 3000),
        launch(3000, 3005, 1),
        kernel("first", 3010, 5010, 1),
        launch(3005, 5012, 0, "cudaStreamSynchronize"),
        launch(5013, 5015, 2),
        kernel("second", 5016, 5036, 2),
        launch(5900, 5905, 3),
        kernel("last", 5910, 5960, 3),
    ]
    others = [launch(5961 + k, 5961.5 + k, 0, "cudaGetDevice") for k in range(20)]
    profile = open_subject([write(tmp_path / "t.json", *events, *others)]).profiles[0]
    (wait,) = (each for each in diagnose(profile).all_findings if each.id == "sync_stall")
    assert wait.cost_ns < 100_000
