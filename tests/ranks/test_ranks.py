"""Ranks of one job: who waits for whom, and why the late one is late – planted, and in real traces."""

import gzip
import json
import os
import pickle
from pathlib import Path

import pytest
from small import event, op, step

from tests.ranks.jobs import LATE_US, TRANSFER_US, compared, job, profile_of, section_of
from tracekit.engine.buckets import WALL
from tracekit.faces.shared.document import as_document
from tracekit.profile import open_subject
from tracekit.ranks import collectives, read_rank
from tracekit.report import report as make_report
from tracekit.report.sections.headline import basis

TRACES = Path(os.environ.get("TRACEKIT_TRACES", Path(__file__).parents[3] / "shared" / "traces"))


@pytest.mark.parametrize("bucket", [key for key in WALL if key not in ("gpu_comm", "cpu_compute", "unrecorded")])
def test_a_planted_straggler_is_found_with_its_bucket_and_time(tmp_path, bucket):
    matched = compared(profile_of(job(tmp_path, late=2, bucket=bucket)))
    assert len(matched) == 3
    assert matched.caused_ns(2) == {bucket: 3 * LATE_US * 1000}
    assert matched.caused_ns(2, step=1) == {bucket: LATE_US * 1000}
    names = ("rank", "transfer_ns", "wait_ns", "late_rank", "late_bucket", "late_ns")
    assert [tuple(row[name] for name in names) for row in matched.table.to_pylist()] == 3 * [
        (rank, TRANSFER_US * 1000, 0 if rank == 2 else LATE_US * 1000, 2, bucket, LATE_US * 1000) for rank in range(4)
    ]


def test_clocks_that_are_off_are_aligned_by_the_collectives(tmp_path):
    matched = compared(profile_of(job(tmp_path, late=1, skew_us=50_000)))
    offsets = [matched.clocks[rank].offset_ns for rank in range(4)]
    assert [offset - offsets[0] for offset in offsets] == [0, 50_000_000, 100_000_000, 150_000_000]
    assert all(clock.error_ns == 0 for clock in matched.clocks.values())
    assert set(matched.table["late_rank"].to_pylist()) == {1}
    assert matched.caused_ns(1) == {"dataload": 3 * LATE_US * 1000}


@pytest.mark.parametrize(("error_ns", "said"), [(0, "collectives."), (1500, "collectives, within 1.50 µs.")])
def test_clocks_are_aligned_within_a_time_or_just_so(tmp_path, monkeypatch, error_ns, said):
    monkeypatch.setattr("tracekit.ranks.Collectives.error_ns", error_ns)
    (section,) = (each for each in make_report(open_subject([job(tmp_path, late=1)])).sections if each.id == "ranks")
    assert section.blocks[0].lines[0].endswith(f"Clocks are aligned by the {said}")


def test_ranks_that_are_in_step_blame_nobody(tmp_path):
    matched = compared(profile_of(job(tmp_path)))
    assert set(matched.table["late_ns"].to_pylist()) == set(matched.table["wait_ns"].to_pylist()) == {0}
    assert len(matched.late) == 0


def test_a_rank_with_fewer_steps_is_matched_as_far_as_it_goes(tmp_path):
    job(tmp_path, late=2)
    job(tmp_path, ranks=1, steps=2, late=2, world=4)
    matched = compared(profile_of(tmp_path))
    assert matched.steps == [0, 1]
    assert matched.unmatched == {0: 0, 1: 1, 2: 1, 3: 1}


def test_ranks_are_compared_by_what_can_be_sent_from_elsewhere(tmp_path):
    job(tmp_path, late=2, skew_us=7)
    there = [pickle.loads(pickle.dumps(read_rank(path))) for path in sorted(tmp_path.iterdir())]  # noqa: S301 – its own
    here = compared(profile_of(tmp_path))
    assert [each.rank for each in there] == [0, 1, 2, 3]
    assert [each.world_size for each in there] == [4] * 4
    again = collectives(there)
    assert again.table.equals(here.table)
    assert again.clocks == here.clocks


def test_the_report_says_it_and_what_is_missing(tmp_path):
    section = section_of(job(tmp_path, late=2, world=8))
    sentence, absent = section.blocks[0].lines
    assert (
        "Rank 2 delays the others: it arrives 400 µs a step later than the first rank, mostly because of data"
        in sentence
    )
    assert "and causes the longest waits in 3 of 3 steps" in sentence
    assert "4 of 8 ranks are missing (ranks 4 to 7)" in absent
    rows = section.blocks[1].rows.to_pylist()
    assert [(row["rank"], row["late"], row["because"]) for row in rows] == [
        (0, 0, None), (1, 0, None), (2, 3, "data loading"), (3, 0, None),
    ]  # fmt: skip
    assert [round(row["wait_ns"]) for row in rows] == [400_000, 400_000, 0, 400_000]


def test_the_straggler_of_each_step_is_named(tmp_path):
    section = section_of(job(tmp_path, late=lambda step: (1, 3, 3)[step], steps=3))
    (stragglers,) = [block.rows for block in section.blocks if getattr(block, "name", "") == "stragglers"]
    assert stragglers.to_pylist() == [
        {"step": step, "rank": rank, "late_ns": LATE_US * 1000, "because": "data loading"}
        for step, rank in enumerate((1, 3, 3))
    ]
    assert "Rank 3 delays the others: it arrives 267 µs a step later" in section.blocks[0].lines[0]


def test_a_rank_that_is_missing_or_short_is_said_to_programs_and_people(tmp_path):
    job(tmp_path, late=2)
    job(tmp_path, ranks=1, steps=2, late=2, world=4)
    (tmp_path / "rank3.json").unlink()
    report = make_report(open_subject([tmp_path]))
    (variant,) = as_document(report)["variants"]
    assert [(each["rank"], each["note"]) for each in variant["ranks"]] == [
        (0, "it answers for 2 of the 3 steps"), (1, None), (2, None), (3, "there is no trace of it"),
    ]  # fmt: skip
    lines = section_of(tmp_path).blocks[0].lines
    assert basis(report).endswith(" of rank 0 (of 4 ranks; 1 is missing)")
    assert "1 of 4 ranks is missing (rank 3)" in lines[1]
    assert "Rank 0: it answers for 2 of the 3 steps" in lines[2]


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
    …431,422 on 2, where it takes 518; it ends on all of them at …431,941 ± 1. Rank 2 begins its step at …428,092, when
    the others are 1,418 to 6,887 into theirs, and comes to the exchange after 3,330, as they do after 3,101 to 3,908:
    what it does in its step, such as waiting for a batch, does not make it late.
    """
    paths = [TRACES / f"param_dlrm_v100_rank{rank}.json.gz" for rank in range(4)]
    first = {}
    for rank, path in enumerate(paths):
        with gzip.open(path) as file:
            events = json.load(file)["traceEvents"]
        exchanges = [each for each in events if each.get("cat") == "kernel" and "SendRecv" in each["name"]]
        first[rank] = min((each["ts"], each["dur"]) for each in exchanges)
    last, took_last = max(first.values())
    matched = compared(open_subject(paths).profiles[0])
    begin = matched.table.slice(0, 4).to_pylist()
    assert {(each["late_rank"], each["late_bucket"], each["cause"], each["transfer_ns"]) for each in begin} == {
        (2, None, "not recorded", took_last * 1000)
    }
    late = (last - min(first.values())[0]) * 1000
    for each in begin:
        assert each["late_ns"] == pytest.approx(late, abs=3000)  # clocks are aligned
        assert each["wait_ns"] == (first[each["rank"]][1] - took_last) * 1000
    assert len(matched) == 8
    assert not any(matched.unmatched.values())
    assert matched.late_before == {2: pytest.approx(late, abs=3000)}
    assert matched.late_ns(2) < 1_000_000


def test_on_a_cpu_a_call_belongs_to_the_step_it_starts_in(tmp_path):
    """The thread that reduces may end a little later than the step that waited for it."""
    for rank, late_us in enumerate((0, 3000)):
        events = []
        for number in range(4):
            t = 1000 + 10_000 * number
            begin, end = t + 1000 + late_us, t + 10_000 + (50 if number == 1 and rank == 0 else -500)
            events += [step(number, t, t + 10_000), op("aten::mm", t + 10, t + 20)]
            events += [event("user_annotation", "gloo:all_reduce", begin, end, tid=2)]
        distributed = {"rank": rank, "world_size": 2, "backend": "gloo"}
        (tmp_path / f"rank{rank}.json").write_text(
            json.dumps({"schemaVersion": 1, "distributedInfo": distributed, "traceEvents": events})
        )
    matched = compared(profile_of(tmp_path))
    rows = matched.table.to_pylist()
    assert [row["step"] for row in rows if row["rank"] == 0] == [0, 1, 2, 3]
    assert {row["late_rank"] for row in rows} == {1}
