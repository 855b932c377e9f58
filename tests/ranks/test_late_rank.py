"""A job that a late rank slows down: that rank is the first finding, the verdict and the headline, on GPUs and CPUs."""

import json

import pytest
from msgspec.structs import replace
from real import case_path
from small import event, kernel, launch, op, step, write

from tests.ranks.jobs import compared, job, profile_of
from tracekit.cli import main
from tracekit.findings import diagnose
from tracekit.findings.belief import Withheld
from tracekit.findings.rules.communication import exposed_comm
from tracekit.profile import open_subject
from tracekit.ranks.straggler import straggler, with_straggler, with_waits
from tracekit.report import report
from tracekit.report.sections.headline import headline
from tracekit.tui.model.opened import OpenReport
from tracekit.tui.model.panes.overview import overview
from tracekit.tui.model.selection import Selection

STEP_US, LATE_US = 40_000, 30_000


def cpu_job(folder, late, buckets=1):
    """Two ranks on CPUs, three steps: both compute for 1 ms, then all-reduce. One loads data for 30 ms before that.

    The backend's thread has the collectives, `buckets` of them at the same time; the main thread waits, in no event.
    """
    for rank in range(2):
        events = []
        for number in range(3):
            begins = 1000 + number * STEP_US
            delay = LATE_US if rank == late else 0
            events += [step(number, begins, begins + STEP_US), op("aten::mm", begins + delay, begins + delay + 1000)]
            if delay:
                loading = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
                events.append(event("user_annotation", loading, begins, begins + delay))
            arrives, ends = begins + delay + 1000, begins + LATE_US + 2000
            for nth in range(buckets):
                events += [
                    op("c10d::allreduce_", arrives + 10 * nth, arrives + 10 * nth + 5),
                    event("user_annotation", "gloo:all_reduce", arrives + 10 * nth + 5, ends + 10 * nth, tid=2 + nth),
                ]
            events.append(op("aten::add_", ends + 100, begins + STEP_US - 10))
        distributed = {"rank": rank, "world_size": 2, "backend": "gloo"}
        content = {"schemaVersion": 1, "distributedInfo": distributed, "traceEvents": events}
        (folder / f"rank{rank}.json").write_text(json.dumps(content))
    return folder


def made(folder):
    return report(open_subject([folder]))


def diagnosed(folder):
    (diagnosis,) = made(folder).diagnoses.values()
    return diagnosis


def test_a_rank_that_waits_on_a_cpu_is_not_blamed_for_it(tmp_path):
    diagnosis = diagnosed(cpu_job(tmp_path, late=1))
    first = diagnosis.findings[0]
    assert diagnosis.verdict.id == first.id == "late_rank"
    assert first.title == (
        "Rank 1 delays the others: it arrives 30.0 ms a step later than the first rank, mostly because of data loading"
    )
    assert first.advice.startswith("On rank 1: data loader: the loop waits for its next batch. It waits 30.0 ms a step")
    assert first.cost_ns == pytest.approx(30e6, rel=0.01)
    assert "python_bound" not in {finding.id for finding in diagnosis.all_findings}
    assert sum(finding.cost_ns for finding in diagnosis.all_findings) <= 40e6


def test_the_late_rank_itself_is_told_the_same(tmp_path):
    diagnosis = diagnosed(cpu_job(tmp_path, late=0))
    assert diagnosis.findings[0].title.startswith("Rank 0 delays the others: it arrives 30.0 ms a step later")
    assert "dataloader_bound" not in {finding.id for finding in diagnosis.findings}  # its cost is the same time
    assert "dataloader_bound" in diagnosis.findings[0].overlaps


def test_what_one_rank_waits_on_a_cpu_is_communication(tmp_path):
    (profile,) = open_subject([cpu_job(tmp_path, late=1) / "rank0.json"]).profiles
    diagnosis = diagnose(profile)
    assert diagnosis.verdict.id == "exposed_comm"
    assert "It waits for 31.0 ms of 40.0 ms a step" in diagnosis.verdict.sentence
    assert profile.parts["gpu_comm"] == pytest.approx(31e6, rel=0.01)
    assert sum(profile.parts.values()) == pytest.approx(profile.mean.step_ns)
    assert profile.mean.parts["gpu_comm"] == 0  # the contract's buckets stay as they are


def test_python_beside_a_collective_is_still_python(tmp_path):
    events = []
    for number in range(3):
        begins = 1000 + 20_000 * number
        events += [
            step(number, begins, begins + 20_000),
            op("aten::mm", begins, begins + 1000),
            event("user_annotation", "gloo:all_reduce", begins + 1000, begins + 3000, tid=2),
            op("aten::mm", begins + 15_000, begins + 19_990),
        ]
    diagnosis = diagnose(open_subject([write(tmp_path / "t.json", *events)]).profiles[0])
    python = next(finding for finding in diagnosis.findings if finding.id == "python_bound")
    assert "12.0 ms a step, up to 12.0 ms at a time" in python.title
    assert python.cost_ns == pytest.approx(12e6, rel=0.01)


def test_collectives_at_the_same_time_make_a_rank_late_once(tmp_path):
    section = next(section for section in made(cpu_job(tmp_path, late=1, buckets=2)).sections if section.id == "ranks")
    assert "it arrives 30.0 ms a step later" in section.blocks[0].lines[0]
    first, second = section.blocks[1].rows.to_pylist()
    assert first["wait_ns"] == pytest.approx(30e6, rel=0.01)
    assert first["comm_ns"] == pytest.approx(31e6, rel=0.01)
    assert first["largest"] == "communication"
    assert second["late_ns"] == pytest.approx(30e6, rel=0.01)


@pytest.mark.parametrize("name", ["text", "markdown", "html", "json"])
@pytest.mark.parametrize("on_gpu", [False, True])
def test_it_is_the_headline_in_every_face(tmp_path, capsys, name, on_gpu):
    folder = job(tmp_path, late=1) if on_gpu else cpu_job(tmp_path, late=1)
    assert main(["report", str(folder), "--format", name]) == 0
    shown = capsys.readouterr().out
    if name == "json":
        document = json.loads(shown)
        assert "late_rank" in {finding["id"] for finding in document["findings"]}
        assert on_gpu or document["variants"][0]["verdict"]["id"] == "late_rank"
        shown = document["sections"][0]["blocks"][0]["lines"][0]
    said = " ".join(shown.replace("\u00a0", " ").split())
    assert said.index("Rank 1 delays the others") < (said.find("a step:") if "a step:" in said else len(said))


def test_it_is_the_headline_of_the_terminal_ui(tmp_path):
    opened = OpenReport(made(cpu_job(tmp_path, late=1)))
    content = overview(opened, Selection())
    assert content.pieces[0].lines[0].startswith("Rank 1 delays the others")


def test_of_two_jobs_each_keeps_its_own_headline(tmp_path):
    """Also where only one of them is shown, and with readers, which compare the ranks of both."""
    for name, late in (("one", 0), ("two", 1)):
        (tmp_path / name).mkdir()
        cpu_job(tmp_path / name, late)
    both = report(open_subject([tmp_path / "one", tmp_path / "two"]))
    both = replace(both, subject=replace(both.subject, ranks=both.ranks))
    assert [line for line in headline(both) if "delays" in line] == [
        f"{name}: Rank {late} delays the others: it arrives 30.0 ms a step later than the first rank, mostly because "
        "of data loading."
        for name, late in (("one", 0), ("two", 1))
    ]
    (line, *_) = headline(both.narrowed(["one"]))
    assert line.startswith("Rank 0 delays the others")


FLIPS = "20.0 ms a step are lost to late ranks, and the late rank changes: rank 0 in steps 0–2, rank 1 in steps 3–5"


@pytest.mark.parametrize("name", ["text", "markdown", "html", "json"])
def test_where_the_late_rank_changes_it_is_said_who_is_late_when(capsys, name):
    assert main(["report", str(case_path("waiting_flips")), "--format", name]) == 0
    said = " ".join(capsys.readouterr().out.replace("\u00a0", " ").split())
    assert FLIPS in (said if name != "json" else json.loads(said)["sections"][0]["blocks"][0]["lines"][0])
    assert "delays the others" not in said
    assert "15.0 ms a step in exposed communication, 10.0 ms of it waiting for later ranks" in said
    if name == "json":
        document = json.loads(said)
        (finding,) = (each for each in document["findings"] if each["id"] == "late_rank")
        assert finding["cost_ns"] == pytest.approx(20e6)
        (rows,) = (
            [dict(zip((column["name"] for column in block["columns"]), row, strict=True)) for row in block["rows"]]
            for section in document["sections"]
            for block in section["blocks"]
            if block.get("name") == "stragglers"
        )
        assert [row["rank"] for row in rows] == [0, 0, 0, 1, 1, 1]


@pytest.mark.parametrize(
    ("late", "said"),
    [
        ((1, 1, 1, 2), "Rank 1 delays the others"),
        ((1, 2, 1, 2), "rank 1 in step 0, rank 2 in step 1, rank 1 in step 2, rank 2 in step 3"),
        ((1, 2, 3, 1, 2, 3), "rank 1 in 2 steps, rank 2 in 2 steps, rank 3 in 2 steps"),
        ((1, 1, None, None, 2, 2), "rank 1 in steps 0–1, rank 2 in steps 4–5"),
    ],
)
def test_a_rank_is_named_where_it_is_late_most_of_the_time(tmp_path, late, said):
    job(tmp_path, late=lambda step: late[step], steps=len(late))
    (diagnosis,) = made(tmp_path).diagnoses.values()
    (finding,) = (each for each in diagnosis.all_findings if each.id == "late_rank")
    assert said in finding.title
    lost = sum(rank is not None for rank in late) * 400_000 / len(late)
    assert finding.cost_ns == pytest.approx(0.75 * lost if "delays" in said else lost)


def test_a_job_in_step_has_no_such_headline(tmp_path, capsys):
    assert main(["report", str(job(tmp_path))]) == 0
    assert "delays the others" not in capsys.readouterr().out


def test_where_all_ranks_are_given_the_finding_has_the_waits_that_they_show(tmp_path):
    """Rank 0 waits equally long each time, so that its trace alone shows no waiting."""
    profile = profile_of(job(tmp_path, late=1))
    (alone,) = exposed_comm(profile)
    assert "No waiting for other ranks is known" in alone.title
    (diagnosis,) = report(open_subject([tmp_path])).diagnoses.values()
    (finding,) = (each for each in diagnosis.all_findings if each.id == "exposed_comm")
    assert finding.title.endswith(". 80.0 % of the collectives' time is waiting for other ranks")  # 400 of 500 µs
    assert "equal work" in finding.advice


@pytest.mark.parametrize("both", [True, False])
@pytest.mark.parametrize("late", [0, 1])
def test_what_slows_every_rank_alike_does_not_explain_the_late_one(tmp_path, both, late):
    """Rank 0 is shown. The late rank dispatches for 1,200 µs; the other for 800, or hardly at all."""
    for rank in range(2):
        events, busy = [], 1200 if rank == late else 800 if both else 20
        for number in range(4):
            begins = 1000 + 2000 * number
            arrives, ends = begins + busy + 20, begins + 1320
            events += [step(number, begins, begins + 1340), op("aten::index", begins, begins + busy)]
            for nth in range(4):
                at = begins + busy * nth / 4
                events += [
                    launch(at + 1, at + 4, 10 * number + nth),
                    kernel("index", at + 5, at + 8, 10 * number + nth),
                ]
            events += [
                launch(arrives - 10, arrives - 2, 10 * number + 9),
                kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", arrives, ends, 10 * number + 9),
                launch(arrives, ends, 0, "cudaDeviceSynchronize"),
            ]
        content = {"schemaVersion": 1, "distributedInfo": {"rank": rank, "world_size": 2}, "traceEvents": events}
        (tmp_path / f"rank{rank}.json").write_text(json.dumps(content))
    finding = next(each for each in diagnosed(tmp_path).all_findings if each.id == "late_rank")
    assert "mostly because of dispatch" in finding.title
    assert finding.do.startswith("Give the ranks equal work" if both else f"On rank {late}: dispatch-bound")


def test_what_was_withheld_of_the_shown_rank_stays_withheld(tmp_path):
    profile = profile_of(job(tmp_path, late=2))
    found = replace(diagnose(profile), withheld=(Withheld("sync_stall", "lost_work", "Work is missing."),))
    matched = compared(profile)
    late = straggler(matched)
    assert late is not None
    assert with_waits(found, profile, matched).withheld == found.withheld
    told = with_straggler(found, profile, late)
    assert told.withheld == found.withheld
    assert "late_rank" in [finding.id for finding in told.all_findings]
