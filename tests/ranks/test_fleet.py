"""Ranks read by other processes, or by a Dask cluster: the same figures, and losses are reported."""

import time
from pathlib import Path

import pytest

import tracekit
from tests.ranks.many_ranks import plant, read_or_die
from tracekit.cli.program import main
from tracekit.errors.reading import ClusterError, RanksLostError
from tracekit.faces.shared.document import as_document
from tracekit.profile import open_subject
from tracekit.ranks import RankColumns
from tracekit.ranks.readers import Lost, Processes, open_ranks, read_all, readers
from tracekit.report import report

distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    """Five ranks, of which rank 3 waits 700 µs for data in each step."""
    return plant(tmp_path_factory.mktemp("job") / "ranks", 5, late={3: 700}, skew_us=2500)


@pytest.fixture(scope="module")
def scheduler():
    """A cluster of two workers in threads of this process, which is reached by its address."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, protocol="tcp://", dashboard_address=":0"
    ) as cluster:
        yield cluster.scheduler_address


def opened(paths, those, watch=None):
    with those:
        return open_ranks(
            paths, those, lambda each: open_subject(each, ranks=False), watch=watch or (lambda done, of: None)
        )


def said(subject):
    """What the report says about ranks, and the figures of the variant."""
    made = report(subject)
    (section,) = [each for each in made.sections if each.id == "ranks"]
    tables = [block.rows.to_pylist() for block in section.blocks if block.kind == "table"]
    (variant,) = [each for each in as_document(made)["variants"] if each["ranks"]]
    return section.blocks[0].lines, tables, variant["name"], variant["mean"], variant["ranks"]


def test_processes_say_what_reading_here_says(job):
    progress = []
    subject = opened([job], readers(2, None), lambda done, of: progress.append((done, of)))
    assert said(subject) == said(open_subject([job]))
    assert "Rank 3 delays the others: it arrives 700 µs a step later" in said(subject)[0][0]
    assert progress == [(done, 5) for done in range(1, 6)]


def test_a_cluster_says_what_reading_here_says(job, scheduler):
    assert said(opened([job], readers(1, scheduler))) == said(open_subject([job]))


def test_a_trace_that_only_the_workers_have_is_fetched(job, scheduler, monkeypatch):
    here = said(open_subject([job]))
    monkeypatch.setattr("tracekit.ranks.readers._is_here", lambda path: False)
    monkeypatch.setattr("tracekit.ranks.readers._PIECE", 1000)
    subject = opened([job], readers(1, scheduler))
    monkeypatch.undo()
    assert said(subject) == here
    (profile,) = subject.profiles
    assert profile.trace.path == profile.captures[0].path == job / "rank0.json"


def test_only_one_trace_of_a_job_is_open(job):
    subject = opened([job], readers(2, None))
    (profile,) = subject.profiles
    assert len(profile.captures) == 1
    assert [each.rank for each in subject.ranks[profile.name]] == [0, 1, 2, 3, 4]


def test_a_rank_that_cannot_be_read_is_said_and_the_others_are_reported(tmp_path):
    folder = plant(tmp_path / "ranks", 4, late={3: 700})
    (folder / "rank1.json").write_text("no trace")
    subject = opened([folder], readers(2, None))
    assert [(name, "rank1.json" in why) for name, why in subject.problems] == [("rank1", True)]
    assert [each.rank for each in subject.ranks["ranks"]] == [0, 2, 3]
    assert "Rank 3 delays the others" in said(subject)[0][0]


def test_none_that_can_be_read_is_one_sentence(tmp_path):
    (tmp_path / "rank0.json").write_text("no trace")
    with pytest.raises(RanksLostError, match=r"Not one of 1 traces could be read. The first one: .*rank0.json"):
        opened([tmp_path], readers(1, None))


class Deadly(Processes):
    """An executor that kills the process to which it gives rank 2."""

    def submit(self, path, infer_steps):
        return self._pool.submit(read_or_die, path, infer_steps)


def test_a_process_that_is_killed_costs_its_own_rank_alone(job):
    progress = []
    with Deadly(2) as those:
        read = read_all(those.traces([job]), those, watch=lambda done, of: progress.append(done))
    assert [type(each) for each in read.values()] == [RankColumns, RankColumns, Lost, RankColumns, RankColumns]
    assert read[job / "rank2.json"] == Lost(
        job / "rank2.json", "the process that read it died twice, perhaps because memory ran out"
    )
    assert progress == [1, 2, 3, 4, 5]


def test_a_cluster_that_loses_its_workers_says_so(job):
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, protocol="tcp://", dashboard_address=":0"
        ) as cluster,
        readers(1, cluster.scheduler_address) as those,
    ):
        paths = those.traces([job])
        cluster.scale(0)
        while those.why_idle() is None:
            time.sleep(0.05)
        read = read_all(paths, those)
    assert {each.why for each in read.values()} == {"the cluster has no workers left"}


def test_an_address_that_does_not_answer_is_one_sentence(job, capsys, monkeypatch):
    monkeypatch.setattr("tracekit.ranks.readers._PATIENCE", 1)
    assert main(["report", str(job), "--cluster", "tcp://127.0.0.1:1"]) == 1
    assert capsys.readouterr().err == (
        "tracekit: --cluster tcp://127.0.0.1:1: nothing answers there. Name the address that its scheduler printed, "
        "or read the ranks on this machine: --workers 8\n"
    )
    with pytest.raises(ClusterError):
        readers(1, "nonsense://x")


def test_the_verbs_take_workers(job, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    assert main(["report", str(job), "--workers", "2"]) == 0
    by_workers = capsys.readouterr().out.splitlines()
    assert main(["report", str(job)]) == 0
    here = capsys.readouterr().out.splitlines()
    leading = by_workers[: by_workers.index("")]
    assert leading == here[: len(leading)]  # the headline, and what it is based on
    assert leading[0].startswith("Rank 3 delays the others")
    assert "of rank 0 (of 5 ranks)" in leading[-1]
    assert main(["export", str(job), "--workers", "2", "-o", str(tmp_path / "out")]) == 0
    assert Path(tmp_path / "out" / "collectives.parquet").is_file()


def test_a_notebook_takes_workers(job):
    here, elsewhere = tracekit.load(job), tracekit.load(job, workers=2)
    assert elsewhere["collectives"].equals(here["collectives"])
    assert elsewhere["ranks"].equals(here["ranks"])
