"""Ranks of one job: who waits for whom, and why the late one is late – planted, and in real traces."""

import gzip
import json
import os
from pathlib import Path

import pytest
from small import event, kernel, launch, op, step

from tracekit.faces.shared.document import as_document
from tracekit.profile import open_subject
from tracekit.ranks import collectives
from tracekit.report import report as make_report

STEP_US, WORK_US, TRANSFER_US, LATE_US = 2000, 300, 100, 400
TRACES = Path(os.environ.get("TRACEKIT_TRACES", Path(__file__).parents[3] / "shared" / "traces"))


def late_for(bucket, start, length):
    """What keeps a rank for so long, beginning at `start`."""
    if bucket == "dataload":
        return [event("user_annotation", "enumerate(DataLoader)#_SingleProcess.__next__", start, start + length)]
    if bucket == "dispatch":
        return [op("aten::index", start, start + length)]
    return []  # Python: nothing runs


def job(folder, *, ranks=4, steps=3, late=None, bucket="dataload", skew_us=0, world=None, name="rank{}.json"):
    """Each step a rank works, then all of them reduce; `late` begins by LATE_US later than the others."""
    for rank in range(ranks):
        events, clock = [], skew_us * rank
        for number in range(steps):
            begins = 1000 + number * STEP_US + clock
            delay = LATE_US if rank == late else 0
            events += [step(number, begins, begins + STEP_US), *late_for(bucket if delay else "", begins, delay)]
            arrives = begins + delay + WORK_US
            ends = 1000 + number * STEP_US + clock + (LATE_US if late is not None else 0) + WORK_US + TRANSFER_US
            correlation = 10 * number
            events += [
                op("c10d::allreduce_", arrives - 20, arrives - 1),
                launch(arrives - 10, arrives - 2, correlation + 1),
                kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", arrives, ends, correlation + 1),
            ]
        told = {"rank": rank, "world_size": world or ranks, "backend": "nccl"}
        content = {"schemaVersion": 1, "distributedInfo": told, "traceEvents": events}
        (folder / name.format(rank)).write_text(json.dumps(content))
    return folder


def profile_of(folder):
    (profile,) = open_subject([folder]).profiles
    return profile


def section_of(folder):
    report = make_report(open_subject([folder]))
    return next(section for section in report.sections if section.id == "ranks")


@pytest.mark.parametrize("bucket", ["dataload", "dispatch", "python"])
def test_a_planted_straggler_is_found_with_its_bucket_and_time(tmp_path, bucket):
    matched = collectives(profile_of(job(tmp_path, late=2, bucket=bucket)).per_rank)
    assert len(matched.matched) == 3
    assert matched.caused_ns(2) == {bucket: 3 * LATE_US * 1000}
    for each in matched.matched:
        assert (each.late_rank, each.late_ns, each.transfer_ns) == (2, LATE_US * 1000, TRANSFER_US * 1000)
        assert each.wait_ns == {0: LATE_US * 1000, 1: LATE_US * 1000, 2: 0, 3: LATE_US * 1000}


def test_clocks_that_are_off_are_aligned_by_the_collectives(tmp_path):
    matched = collectives(profile_of(job(tmp_path, late=1, skew_us=50_000)).per_rank)
    offsets = [matched.clocks[rank].offset_ns for rank in range(4)]
    assert [offset - offsets[0] for offset in offsets] == [0, 50_000_000, 100_000_000, 150_000_000]
    assert all(clock.error_ns == 0 for clock in matched.clocks.values())
    assert {each.late_rank for each in matched.matched} == {1}
    assert matched.caused_ns(1) == {"dataload": 3 * LATE_US * 1000}


def test_ranks_that_are_in_step_blame_nobody(tmp_path):
    matched = collectives(profile_of(job(tmp_path)).per_rank)
    assert all(each.late_ns == 0 and not any(each.wait_ns.values()) for each in matched.matched)


def test_a_rank_with_fewer_steps_is_matched_as_far_as_it_goes(tmp_path):
    job(tmp_path, late=2)
    job(tmp_path, ranks=1, steps=2, late=2, world=4)
    matched = collectives(profile_of(tmp_path).per_rank)
    assert [each.step for each in matched.matched] == [0, 1]
    assert matched.unmatched == {0: 0, 1: 1, 2: 1, 3: 1}


def test_the_report_says_it_and_what_is_missing(tmp_path):
    section = section_of(job(tmp_path, late=2, world=8))
    (sentence,) = section.blocks[0].lines
    assert (
        "Rank 2 is the one to wait for: it arrives 400 µs a step later than the first, mostly because of data"
        in sentence
    )
    assert "4 of 8 ranks are missing" in sentence
    rows = section.blocks[1].rows.to_pylist()
    assert [(row["rank"], row["late"], row["because"]) for row in rows] == [
        (0, 0, None), (1, 0, None), (2, 3, "data loading"), (3, 0, None),
    ]  # fmt: skip
    assert [round(row["wait_ns"]) for row in rows] == [400_000, 400_000, 0, 400_000]


def test_programs_get_every_rank(tmp_path):
    (variant,) = as_document(make_report(open_subject([job(tmp_path, late=2)])))["variants"]
    assert [each["rank"] for each in variant["ranks"]] == [0, 1, 2, 3]
    assert [each["clock_error_ns"] for each in variant["ranks"]] == [0] * 4
    assert all(sum(each["mean"]["wall"].values()) > 0 for each in variant["ranks"])


def test_each_is_a_variant_where_that_is_asked_for(tmp_path):
    job(tmp_path)
    assert [profile.name for profile in open_subject([tmp_path], ranks=False).profiles] == [
        f"rank{k}" for k in range(4)
    ]
    assert profile_of(tmp_path).captures[3].rank == 3


def test_two_jobs_side_by_side_stay_two(tmp_path):
    for name in ("eager", "compiled"):
        (tmp_path / name).mkdir()
        job(tmp_path / name, name=f"{name}_rank{{}}.json")
    names = [profile.name for profile in open_subject([tmp_path / "eager", tmp_path / "compiled"]).profiles]
    assert names == ["eager", "compiled"]


def test_traces_without_a_rank_stay_apart(tmp_path):
    for name in ("one.json", "two.json"):
        job(tmp_path, ranks=1, name=name)
    assert len(open_subject([tmp_path]).profiles) == 2


@pytest.mark.skipif(not (TRACES / "param_dlrm_v100_rank0.json.gz").exists(), reason="needs the real traces")
def test_four_ranks_of_a_recommender_tell_what_their_events_tell():
    """In the files, times in µs: the first exchange begins at …424,306 on rank 1, …425,808 on 3, …429,795 on 0 and
    …431,422 on 2, where it takes 518; it ends on all of them at …431,941 ± 1. Rank 2 still waited for its batch.
    """
    paths = [TRACES / f"param_dlrm_v100_rank{rank}.json.gz" for rank in range(4)]
    first = {}
    for rank, path in enumerate(paths):
        with gzip.open(path) as file:
            events = json.load(file)["traceEvents"]
        exchanges = [each for each in events if each.get("cat") == "kernel" and "SendRecv" in each["name"]]
        first[rank] = min((each["ts"], each["dur"]) for each in exchanges)
    last, took_last = max(first.values())
    matched = collectives(open_subject(paths).profiles[0].per_rank)
    begin = matched.matched[0]
    assert (begin.late_rank, begin.late_bucket, begin.transfer_ns) == (2, "dataload", took_last * 1000)
    assert begin.late_ns == pytest.approx((last - min(first.values())[0]) * 1000, abs=3000)  # clocks are aligned
    for rank, (_, took) in first.items():
        assert begin.wait_ns[rank] == (took - took_last) * 1000
    assert len(matched.matched) == 8
    assert not any(matched.unmatched.values())
